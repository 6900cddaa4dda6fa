import HTTPServer
import Reactor

/// Requests of one loop whose programs have ended their side. TCP does not tell whether such a program only finished
/// sending or is gone. So its request ends after `patience` without progress, and sooner if other requests need its
/// connection to the upstream (decision 0004). Loop's thread only.
final class EndedPrograms {
    /// Time without progress after which the request ends.
    static let patience = Duration.seconds(3)
    /// Time between two checks. A request makes room for others only after one interval without progress.
    static let interval = Duration.milliseconds(250)

    /// Byte counts that grow while a request makes progress.
    struct Progress: Equatable {
        var taken: UInt64
        var sent: UInt64
    }

    private struct Entry {
        let request: Forwarder
        var progress: Progress
        /// Time of the last progress, or of the program's end.
        var quietSince: LoopTime
    }

    private let loop: EventLoop
    private var entries: [ObjectIdentifier: Entry] = [:]
    private var timer: LoopTimer?

    init(loop: EventLoop) {
        self.loop = loop
        timer = LoopTimer(on: loop) { [unowned self] in check() }
    }

    func insert(_ request: Forwarder) {
        if entries.isEmpty { timer?.schedule(after: Self.interval) }
        entries[ObjectIdentifier(request)] = Entry(
            request: request, progress: request.progress, quietSince: loop.now)
    }

    func remove(_ request: Forwarder) { entries[ObjectIdentifier(request)] = nil }

    /// Ends requests without progress, beginning with the longest pause. Each end frees a connection to an upstream.
    /// Once enough connections are free, only requests past `patience` end.
    private func check() {
        let now = loop.now
        for (key, entry) in entries where !entry.request.awaitsOthers || entry.request.progress != entry.progress {
            entries[key] = Entry(request: entry.request, progress: entry.request.progress, quietSince: now)
        }
        for (key, entry) in entries.sorted(by: { $0.value.quietSince < $1.value.quietSince }) {
            // Ending another request may have started a new request on this connection.
            guard let current = entries[key], current.quietSince == entry.quietSince else { continue }
            let quiet = now.since(entry.quietSince)
            guard quiet >= Self.interval else { break }
            if quiet >= Self.patience {
                entry.request.giveUp("The client ended its side, and its request made no progress for three seconds.")
            } else if entry.request.canGiveWay {
                entry.request.giveUp("The client ended its side, and other requests needed a connection.")
            }
        }
        if !entries.isEmpty { timer?.schedule(after: Self.interval) }
    }
}

extension Forwarder {
    var progress: EndedPrograms.Progress {
        EndedPrograms.Progress(taken: stream.progress.bodyTaken, sent: context.ledger.bytesSent)
    }

    /// Whether the request waits for the upstream or the token endpoint, not for its program. `false` for tunnels.
    var awaitsOthers: Bool { context.exchange.awaitsOthers && stream.progress.isOutputSent }

    /// Whether other requests wait for this request's upstream connection, and its program has no part of the answer.
    var canGiveWay: Bool {
        guard let upstreamStream, !upstreamStream.isQueued, !context.exchange.isAnswered else { return false }
        return (context.upstream?.shortage(http2: upstreamStream.isHTTP2) ?? 0) > 0
    }

    /// Ends the request and its program's connection.
    /// - Parameter cause: sentence for the access log.
    func giveUp(_ cause: String) {
        context.ledger.cause = cause
        if context.exchange.isAnswered { return perform(.cut(because: nil)) }
        leave()
        stream.close(cut: true)
    }
}
