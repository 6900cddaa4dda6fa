import Dispatch
import Glibc
import Logging
import Synchronization

/// The signals that the proxy handles.
///
/// SIGTERM and SIGINT stop the proxy, SIGHUP makes it read its configuration again. SIGCHLD reaps children. By default, SIGUSR1, SIGUSR2 and
/// the signals of timers, power and descriptors would end the process. Here they only write a log line. SIGQUIT,
/// SIGABRT and the signals of faults still end the process at once.
final class Signals {
    /// One element for each SIGTERM and SIGINT.
    let stops: AsyncStream<Void>
    /// One element for all SIGHUPs since the last element.
    let reloads: AsyncStream<Void>
    private let stopped: AsyncStream<Void>.Continuation
    private let reloaded: AsyncStream<Void>.Continuation
    private let source: any DispatchSourceRead

    private static let named: [(number: Int32, name: String)] = [
        (SIGHUP, "SIGHUP"), (SIGUSR1, "SIGUSR1"), (SIGUSR2, "SIGUSR2"), (SIGALRM, "SIGALRM"), (SIGVTALRM, "SIGVTALRM"),
        (SIGPROF, "SIGPROF"), (SIGIO, "SIGIO"), (SIGPWR, "SIGPWR"), (SIGSTKFLT, "SIGSTKFLT"),
    ]

    /// Makes the process survive SIGHUP and unused signals. Called first. A pipe keeps the signals for `init`.
    static func catchUnusedSignals() {
        // A write beyond a file's size limit then fails with an error code, and does not end the process.
        _ = signal(SIGXFSZ, SIG_IGN)
        SignalPipe.open()
        for (number, _) in named { SignalPipe.catchSignal(number) }
        SignalPipe.catchSignal(SIGCHLD)
        // Real-time signals have no names. signal(7).
        for number in SignalPipe.realTime { SignalPipe.catchSignal(number) }
    }

    init(logger: Logger) {
        (stops, stopped) = AsyncStream.makeStream()
        (reloads, reloaded) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        source = DispatchSource.makeReadSource(fileDescriptor: SignalPipe.readEnd, queue: .global())
        source.setEventHandler { [stopped, reloaded] in
            defer { Children.reap() }
            for (number, _) in SignalPipe.take() {
                switch number {
                case SIGTERM, SIGINT: stopped.yield()
                case SIGHUP: reloaded.yield()
                case SIGCHLD: break
                default:
                    logger.warning(
                        "a signal without a meaning for the proxy; nothing was done",
                        metadata: [
                            "signal": "\(Self.name(of: number))",
                            "what_to_do": "SIGHUP makes the proxy read its configuration again; SIGTERM ends it",
                        ])
                }
            }
        }
        source.activate()
        for number in [SIGTERM, SIGINT] { SignalPipe.catchSignal(number) }
        // Children from before this process replaced another program.
        Children.reap()
    }

    /// Stops the proxy as SIGTERM does.
    var stop: @Sendable () -> Void { { [stopped] in stopped.yield() } }

    func end() {
        source.cancel()
        stopped.finish()
        reloaded.finish()
    }

    private static func name(of number: Int32) -> String {
        named.first { $0.number == number }?.name ?? "SIGRTMIN+\(number - SignalPipe.realTime.lowerBound)"
    }
}
