import CurlTransport
import Heimdallr

// Deadlines and pauses of a request.
extension Exchange {
    /// The party that the request waits for. `Forwarder.timeout(of:)` has the deadline for each.
    enum Patience: Equatable {
        /// No party, or a task with its own deadline.
        case none
        /// No party: the 407 for a wrong password is delayed.
        case loginDelay
        case response
        case requestBody
        /// The upstream: the answer's body, or bytes of an upgraded connection.
        case upstream
        /// The program of an upgraded connection: its bytes, or its end.
        case program
        /// The upstream's last bytes, after the program of an upgraded connection ended its side.
        case upstreamEnd
        /// The program's first bytes inside CONNECT, or its ClientHello.
        case firstBytes
        case tunnel
    }

    var patience: Patience {
        switch state {
        case .deciding, .awaitingToken: .none
        case .collecting: .requestBody
        case .delayed: .loginDelay
        // A program that may wait for 100 with its body waits for the upstream.
        case .asked(let asked): asked.awaitsBody && asked.isBodyDue ? .requestBody : .response
        case .refused, .announced, .answered: .upstream
        case .switched(let switched):
            switched.isLeaving ? .upstreamEnd : switched.hasUpstreamEnded ? .program : .upstream
        case .greeted, .connected: .firstBytes
        case .tunnelled: .tunnel
        }
    }

    /// Error type of an upstream that stalls (RFC 9209, section 2.3.8).
    private static let silent = "connection_read_timeout"

    /// - Parameter token: token of the request; `nil` without one.
    mutating func deadlinePassed(_ token: AccessToken?) -> Action {
        switch state {
        case .deciding, .awaitingToken: return .wait
        case .delayed: return .refuseAfterDelay
        case .collecting: return .fail(Problem(.slowBody))
        case .asked:
            let slowBody = request.isGRPC ? Problem(.slowCall) : Problem(.slowBody)
            return .fail(patience == .requestBody ? slowBody : Problem(.responseTimeout))
        case .announced: return .fail(Problem(.responseTimeout))
        // The held 401 stays incomplete, so the program never gets it.
        case .refused(let held):
            return replayAfterRefusal(held, UpstreamEnd(error: TransportError(.responseTruncated, message: "")), token)
        case .answered: return .cut(because: Self.silent)
        case .switched(let switched):
            if switched.isLeaving { return .leave(closes: true) }
            return .cut(because: switched.hasUpstreamEnded ? nil : Self.silent)
        case .greeted: return .endConnect(Problem(.slowHello))
        case .connected: return .endConnect(Problem(.nothingInside))
        case .tunnelled: return .endTunnel
        }
    }

    // MARK: Pauses

    func roomCame() -> Action { pause == .room ? .resumeAnswer : .wait }

    func turnCame() -> Action {
        guard pause == .turn else { return .wait }
        return isCollecting ? .collectBody : .resumeAnswer
    }
}
