import CurlTransport
import HTTPServer
import Reactor

// Deadlines, turns of the loop, and backpressure.
extension Forwarder {
    // MARK: Time

    /// Sets the connection's deadline for the party that the exchange now waits for.
    func keepTime() {
        switch current.exchange.patience {
        case .none: stream.setDeadline(after: .off)
        case .guess: stream.setDeadline(after: Self.guessDelay)
        case .response: stream.setDeadline(after: current.upstream?.responseTimeout ?? .off)
        case .requestBody, .client, .tunnel: stream.setDeadline(after: rules.idleTimeout)
        case .upstream: stream.setDeadline(after: current.upstream?.idleTimeout ?? .off)
        case .upstreamEnd: stream.setDeadline(after: Self.endingTimeout)
        }
    }

    /// Idle timeout of the upstream after the client ended its side, if that end can't be passed on.
    private static let endingTimeout = Timeout(.milliseconds(500))
    /// Error type of an upstream that stalls (RFC 9209, section 2.3.8).
    private static let silent = "connection_read_timeout"

    func deadlinePassed() {
        switch current.exchange.patience {
        case .none: break
        case .guess: refuseGuess()
        case .tunnel: current.tunnel?.end(cut: true)
        case .upstreamEnd:
            leave()
            stream.close(cut: false)
        case .response, .requestBody, .upstream, .client:
            if let problem = current.exchange.impatience { return fail(problem) }
            cut(because: current.exchange.patience == .upstream ? Self.silent : nil)
        }
    }

    // MARK: Turns

    /// Whether another piece of an answer may be handled in this turn.
    var hasShareLeft: Bool {
        let (turn, now) = (shard.loop.now, LoopTime.current())
        return share.takesMore(turn: turn, now: now)
    }

    /// Pauses the answer until other connections have had their turn.
    func waitForTurn() -> BodyTaking {
        current.isYielding = true
        if !isTurnScheduled {
            isTurnScheduled = true
            shard.loop.atNextTurn(self)
        }
        return .partly(0)
    }

    func nextTurn() {
        isTurnScheduled = false
        guard current.isYielding else { return }
        current.isYielding = false
        if current.exchange.isCollecting { return goOnCollecting() }
        current.outbound?.resumeBody()
    }

    func roomCame() {
        guard current.isPaused else { return }
        current.isPaused = false
        current.outbound?.resumeBody()
    }

    func bodyArrived() {
        if current.exchange.isCollecting { return goOnCollecting() }
        current.outbound?.resumeUpload()
    }
}
