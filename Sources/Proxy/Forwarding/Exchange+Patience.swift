// Deadlines of a request, and the client's connection behind it.
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
        case .judged, .awaitingToken: .none
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

    /// Problem to report at the deadline; `nil`: the client has part of an answer, and is cut off.
    var impatience: Problem? {
        switch state {
        case .answered, .switched: nil
        case .held: .userRequired
        case .collecting: .slowBody
        case .asked: patience == .requestBody ? .slowBody : .responseTimeout
        case .judged, .awaitingToken, .refused: .responseTimeout
        case .tunnelled: .tunnelTimeout
        }
    }

    /// Whether the client's connection can carry another request behind this answer.
    /// - Parameter isRequestComplete: the request's body has been read.
    @inline(__always)
    func keepsConnection(isRequestComplete: Bool) -> Bool { request.keepsAlive && isRequestComplete }

    /// The same for an answer of the proxy. HTTP/1.0 needs a field that such answers lack, and an unread body would be
    /// taken for the next request.
    /// - Parameter closes: the answer itself ends the connection.
    func keepsConnection(behindOwn closes: Bool, isRequestComplete: Bool, mustClose: Bool) -> Bool {
        !closes && !mustClose && keepsConnection(isRequestComplete: isRequestComplete) && !request.isHTTP10
    }
}
