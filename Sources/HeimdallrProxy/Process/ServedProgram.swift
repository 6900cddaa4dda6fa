import Dispatch
import Glibc
import Synchronization

/// The program of `exec --serve`: its start, its signals, its end. Any thread.
final class ServedProgram: Sendable {
    private enum State {
        case waiting
        case running(ChildProgram)
        case ended(ChildProgram.Ending)
        case notStarted(any Error)
    }

    /// One element when the program ends or can't start, and one for each SIGTERM and SIGINT after that.
    let stops: AsyncStream<Void>
    private let stopped: AsyncStream<Void>.Continuation
    private let state = Mutex(State.waiting)

    /// Signals that end a process by default and can be handled, without those that report its own faults. signal(7).
    private static let passed: [Int32] =
        [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT]
        + SignalPipe.realTime
    /// Signals of the terminal's keys, such as Ctrl-C. The terminal sends them to the program, too.
    private static let keys = [SIGINT, SIGQUIT]

    init() { (stops, stopped) = AsyncStream.makeStream() }

    /// Starts the program by `spawn`, and passes signals to it from now on. Before this call, signals have their usual
    /// effect on the proxy.
    func start(_ spawn: () throws -> ChildProgram) {
        _ = signal(SIGXFSZ, SIG_IGN)
        SignalPipe.open()
        let reading = DispatchSource.makeReadSource(fileDescriptor: SignalPipe.readEnd)
        reading.setEventHandler { [self] in
            note(SignalPipe.take())
            // Keeps the source as long as the process runs.
            withExtendedLifetime(reading) {}
        }
        for number in Self.passed where !SignalPipe.isIgnored(number) { SignalPipe.catchSignal(number) }
        SignalPipe.catchSignal(SIGCHLD)
        state.withLock { state in
            do {
                state = .running(try spawn())
            } catch {
                state = .notStarted(error)
                stopped.yield()
            }
        }
        reading.activate()
    }

    /// Acts as a received SIGTERM: the program gets it, or, after the program's end, `stops` gets an element.
    var terminate: @Sendable () -> Void { { [self] in note([(SIGTERM, false)]) } }

    /// Returns the program's exit code, 128 plus the signal that ended it, or `failure` while it has not ended.
    /// - Throws: the reason why the program could not start.
    func exitCode() throws -> Int32 {
        switch state.withLock({ $0 }) {
        case .waiting, .running: ExitStatus.failure.rawValue
        case .ended(.exited(let code)): code
        case .ended(.signalled(let number)): 128 + number
        case .notStarted(let error): throw error
        }
    }

    private func note(_ signals: [(number: Int32, isFromKernel: Bool)]) {
        state.withLock { state in
            for (number, isFromKernel) in signals {
                if case .running(let program) = state {
                    let isKey = isFromKernel && Self.keys.contains(number)
                    if number != SIGCHLD, !isKey { program.pass(number) }
                } else if number == SIGTERM || number == SIGINT {
                    stopped.yield()
                }
            }
            Children.reap()
            guard case .running(let program) = state, let ending = program.ending() else { return }
            state = .ended(ending)
            stopped.yield()
        }
    }
}
