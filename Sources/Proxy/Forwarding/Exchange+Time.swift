// Deadlines and pauses of a request.
extension Exchange {
    /// The party that the request waits for, which decides the deadline.
    enum Patience: Equatable {
        /// Nothing, or a task with its own deadline.
        case none
        case guess
        case response
        case requestBody
        /// The upstream's answer body, or bytes of another protocol.
        case upstream
        /// The client's bytes of another protocol, or its end.
        case client
        case upstreamEnd
        case tunnel
    }

    var patience: Patience {
        switch state {
        case .deciding, .awaitingToken: .none
        case .collecting: .requestBody
        case .held: .guess
        // A client that may wait for 100 waits for the upstream.
        case .asked(let asked):
            asked.awaitsBody && (asked.hasBody || asked.isContinued || !request.expectsContinue)
                ? .requestBody : .response
        case .refused, .answered: .upstream
        case .switched(let switched):
            switched.isLeaving ? .upstreamEnd : switched.hasUpstreamEnded ? .client : .upstream
        case .tunnelled: .tunnel
        }
    }

    /// The party whose time begins anew; `nil`: no deadline changes. While the client has to take some of the answer, its
    /// stream keeps the time.
    mutating func takeNewTime() -> Patience? {
        guard hasNewTime else { return nil }
        hasNewTime = false
        return pause == .room ? nil : patience
    }

    /// Error type of an upstream that stalls (RFC 9209, section 2.3.8).
    private static let silent = "connection_read_timeout"

    func deadlinePassed() -> Action {
        switch state {
        case .deciding, .awaitingToken: .wait
        case .held: .refuseGuess
        case .collecting: .fail(.slowBody)
        case .asked: .fail(patience == .requestBody ? .slowBody : .responseTimeout)
        case .refused: .fail(.responseTimeout)
        case .answered: .cut(because: Self.silent)
        case .switched(let switched):
            switched.isLeaving ? .leave(closes: true) : .cut(because: switched.hasUpstreamEnded ? nil : Self.silent)
        case .tunnelled: .endTunnel
        }
    }

    /// The request has ended: nothing is waited for.
    mutating func settle() {
        hasNewTime = false
        pause = .none
    }

    // MARK: Pauses

    /// A piece of the answer is about to go to the client.
    mutating func pieceCame() { hasNewTime = true }

    mutating func pause(for cause: Pause) { pause = cause }

    func roomCame() -> Action { pause == .room ? .resumeAnswer : .wait }

    func turnCame() -> Action {
        guard pause == .turn else { return .wait }
        return isCollecting ? .collectBody : .resumeAnswer
    }

    /// The answer, or the collecting of a body, goes on.
    mutating func resume() {
        if pause == .room { hasNewTime = true }
        pause = .none
    }
}
