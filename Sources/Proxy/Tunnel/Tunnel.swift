import Reactor

/// Bytes both ways between a client and what it asked to be connected to, until both have ended, or one has failed. The
/// end of one side is passed on as an end; the other direction goes on. Loop's thread only.
final class Tunnel: ReadinessHandler, NextTurnHandler {
    private let client: TunnelSide
    private let upstream: TunnelSide
    let toUpstream: TunnelFlow
    let toClient: TunnelFlow
    private let loop: EventLoop
    /// Something moved.
    private let progressed: () -> Void
    /// Told once, when all is over. The client's socket is the caller's to close.
    private var ended: (() -> Void)?
    private var isScheduled = false

    init(
        client: TunnelSide, upstream: TunnelSide, loop: EventLoop, progressed: @escaping () -> Void,
        ended: @escaping () -> Void
    ) {
        self.client = client
        self.upstream = upstream
        toUpstream = TunnelFlow(from: client, to: upstream)
        toClient = TunnelFlow(from: upstream, to: client)
        self.loop = loop
        self.progressed = progressed
        self.ended = ended
    }

    func clientReady(_ readiness: Readiness) { note(readiness, client) }

    /// The upstream's socket is ready.
    func ready(_ readiness: Readiness) { note(readiness, upstream) }

    private func note(_ readiness: Readiness, _ side: TunnelSide) {
        guard ended != nil else { return }
        side.note(readiness)
        // A reset does not wait until what came before it is read.
        if readiness.contains(.error) { fail(side) } else { pump() }
    }

    func nextTurn() {
        isScheduled = false
        pump()
    }

    /// Moves what can be moved, a share of it each turn.
    func pump() {
        guard ended != nil else { return }
        var scratch = ByteBuffer(capacity: TunnelFlow.piece)
        var isUnfinished = false
        switch toUpstream.move(&scratch) {
        case .idle: break
        case .more: isUnfinished = true
        case .failed(let side): return fail(side)
        }
        switch toClient.move(&scratch) {
        case .idle: break
        case .more: isUnfinished = true
        case .failed(let side): return fail(side)
        }
        if toUpstream.hasMoved || toClient.hasMoved {
            toUpstream.hasMoved = false
            toClient.hasMoved = false
            progressed()
        }
        if toUpstream.isDone, toClient.isDone { return end(cut: false) }
        if isUnfinished, !isScheduled {
            isScheduled = true
            loop.atNextTurn(self)
        }
    }

    /// What came from the failed side is still sent on, as far as the other takes it (RFC 9110, section 9.3.6).
    private func fail(_ side: TunnelSide) {
        var scratch = ByteBuffer(capacity: TunnelFlow.piece)
        let flow = side === client ? toUpstream : toClient
        for _ in 0..<8 {
            guard case .more = flow.move(&scratch) else { break }
        }
        end(cut: true)
    }

    /// Ends it now. A cut one ends in a reset: it must not look like an orderly end, unless that would take away what
    /// is on its way still.
    func end(cut: Bool) {
        guard let ended else { return }
        self.ended = nil
        if cut {
            for side in [client, upstream] where side.socket.unacknowledged <= 0 { side.socket.resetOnClose() }
        }
        upstream.socket.close()
        ended()
    }
}
