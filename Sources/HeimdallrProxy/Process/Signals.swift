import Dispatch
import Glibc
import Logging
import Synchronization

/// The signals that the proxy hears.
///
/// SIGTERM and SIGINT ask it to stop, SIGHUP to read its configuration again. Those that mean nothing to it would end it
/// in the middle of its requests: SIGUSR1 and SIGUSR2, and those of timers, power and descriptors. They make a log line,
/// and that is all. SIGQUIT, SIGABRT and the signals of faults end a process at once, and are meant to.
final class Signals {
    /// Something for each SIGTERM and SIGINT since this was made.
    let stops: AsyncStream<Void>
    /// Something for SIGHUPs since this was made, and since it was looked at: one is as good as ten.
    let reloads: AsyncStream<Void>
    private let stopped: AsyncStream<Void>.Continuation
    private let reloaded: AsyncStream<Void>.Continuation
    private let source: any DispatchSourceRead

    private static let stopping = [SIGTERM, SIGINT]

    private static let named: [(number: Int32, name: String)] = [
        (SIGHUP, "SIGHUP"), (SIGUSR1, "SIGUSR1"), (SIGUSR2, "SIGUSR2"), (SIGALRM, "SIGALRM"), (SIGVTALRM, "SIGVTALRM"),
        (SIGPROF, "SIGPROF"), (SIGIO, "SIGIO"), (SIGPWR, "SIGPWR"), (SIGSTKFLT, "SIGSTKFLT"),
    ]

    /// From here on the process lives through those that mean nothing. To be called first; what comes before `init` waits
    /// for the log.
    static func catchStrays() {
        // A file that reached its limit is an error code of one write, like a peer that closed.
        _ = signal(SIGXFSZ, SIG_IGN)
        SignalPipe.open()
        for (number, _) in named { SignalPipe.catchSignal(number) }
        // Those of real time have numbers only. signal(7).
        for number in SignalPipe.realTime { SignalPipe.catchSignal(number) }
    }

    init(logger: Logger) {
        (stops, stopped) = AsyncStream.makeStream()
        (reloads, reloaded) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        source = DispatchSource.makeReadSource(fileDescriptor: SignalPipe.readEnd, queue: .global())
        source.setEventHandler { [stopped, reloaded] in
            for number in SignalPipe.take() {
                guard !Self.stopping.contains(Int32(number)) else {
                    stopped.yield()
                    continue
                }
                guard number != SIGHUP else {
                    reloaded.yield()
                    continue
                }
                logger.warning(
                    "a signal that means nothing to the proxy; nothing was done",
                    metadata: [
                        "signal": "\(Self.name(of: Int32(number)))",
                        "what_to_do": "SIGHUP has it read its configuration again; SIGTERM ends it",
                    ])
            }
        }
        source.activate()
        for number in Self.stopping { SignalPipe.catchSignal(number) }
    }

    /// Does what SIGTERM does.
    var stop: @Sendable () -> Void { { [stopped] in stopped.yield() } }

    /// Hears no more.
    func end() {
        source.cancel()
        stopped.finish()
        reloaded.finish()
    }

    private static func name(of number: Int32) -> String {
        named.first { $0.number == number }?.name ?? "SIGRTMIN+\(number - SignalPipe.realTime.lowerBound)"
    }
}
