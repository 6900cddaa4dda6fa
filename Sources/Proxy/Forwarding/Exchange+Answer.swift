import CurlTransport
import HTTPMessage
import Heimdallr

// The upstream's answer, and the end of the upstream's stream.
extension Exchange {
    /// Findings of the phase *judge* about an answer.
    struct Findings {
        /// The upstream refused the token, and a newer token may help (rule 7).
        var isTokenRefused = false
        /// The status of a gRPC call is still to come, and may refuse the token.
        var awaitsStatus = false
        /// The 401 has a nonce for another try (RFC 9449, section 9).
        var wantsNonce = false
        /// The body sent so far is kept, so the request can be sent again.
        var canSendAgain = false
        var isRequestComplete = false
    }

    enum Verdict: Equatable {
        case forward
        /// Forward an interim answer.
        case forwardInterim
        /// Read on without forwarding: an interim answer to an HTTP/1.0 client, or a held answer.
        case read
        case switchProtocols
        /// End the upstream's stream. `ended` then decides the next action.
        case stop
    }

    mutating func judge(_ answer: borrowing ResponseHead, _ findings: Findings) -> Verdict {
        hasNewTime = true
        if answer.isInterim {
            if answer.status == 100, case .asked(var asked) = state {
                asked.has100 = true
                state = .asked(asked)
            }
            return request.isHTTP10 ? .read : .forwardInterim
        }
        if answer.status == 101 { return request.offersUpgrade ? .switchProtocols : refuse(.unaskedUpgrade) }
        let wantsToken = findings.isTokenRefused && request.replaysUnauthorized
        if findings.canSendAgain, findings.wantsNonce || wantsToken, !attempts.wasRefused {
            attempts.wantsNonce = findings.wantsNonce
            return hold(HeldAnswer(head: copy answer), findings)
        }
        awaitsStatus = findings.awaitsStatus
        if awaitsStatus, findings.canSendAgain, request.replaysUnauthorized, !attempts.wasRefused {
            state = .announced(HeldAnswer(head: copy answer))
            pause = .turn
            return .read
        }
        // 417 refuses the Expect field. Only the program can repeat the request without it.
        if answer.status == 417, request.expectsContinue { return refuse(.expectationFailed) }
        return .forward
    }

    /// Sends the program `problem` instead of the upstream's answer.
    mutating func refuse(_ problem: Problem) -> Verdict {
        stop(problem)
        return .stop
    }

    private mutating func hold(_ answer: HeldAnswer, _ findings: Findings) -> Verdict {
        var answer = answer
        // To read on, the stream must stay open. It would then send the rest of the request's body, which may exceed
        // `max_replay_bytes`. The body of a 401 that asks for a nonce is not read: this 401 is rarely passed on.
        let readsOn = findings.isRequestComplete && !attempts.wantsNonce
        if !readsOn, !request.isHead, answer.head.framing != .none, answer.head.framing != .length(0) {
            answer.isWhole = false
        }
        state = .refused(answer)
        return readsOn ? .read : .stop
    }

    /// Ends the hold of a gRPC call's answer. Returns its head, which must now be written; `nil` if no head is held.
    mutating func release() -> HeldAnswer? {
        guard case .announced(let answer) = state else { return nil }
        state = .deciding
        return answer
    }

    /// Notes that the answer's head is sent, and decides whether the program's connection stays open.
    /// - Parameters:
    ///   - isRequestComplete: whether the request's body has been read.
    ///   - mustClose: whether the listener or the process is ending.
    /// - Returns: the framing of the answer's body for the program.
    mutating func answer(
        status: Int, framing: BodyFraming, isRequestComplete: Bool, mustClose: Bool
    ) -> BodyFraming {
        // If the request's body is not read whole, the connection closes after an error. It also closes if the program
        // may still wait for 100.
        var hasBegun = !request.expectsContinue
        if case .asked(let asked) = state, asked.has100 || asked.hasBody { hasBegun = true }
        if !isRequestComplete, !request.isHTTP2, status >= 400 || !hasBegun { request.keepsAlive = false }
        if mustClose { request.keepsAlive = false }
        var framing = framing
        if framing == .chunked || framing == .untilClose {
            // HTTP/1.0 has no chunks: the end of the connection ends the body.
            framing = request.isHTTP10 ? .untilClose : .chunked
            if request.isHTTP10 { request.keepsAlive = false }
        }
        state = .answered(framing: framing)
        return framing
    }

    mutating func switchProtocols() {
        request.keepsAlive = false
        state = .switched(Switched())
    }

    /// Notes that the program of an upgraded connection ended its side.
    /// - Parameter isPassedOn: whether the upstream learns of this end.
    mutating func programEndedItsSide(isPassedOn: Bool) {
        hasNewTime = true
        guard !isPassedOn, case .switched(var switched) = state else { return }
        switched.isLeaving = true
        state = .switched(switched)
    }

    /// Notes that the upstream of an upgraded connection ended its side.
    mutating func upstreamEndedItsSide() {
        hasNewTime = true
        guard case .switched(var switched) = state else { return }
        switched.hasUpstreamEnded = true
        state = .switched(switched)
    }

    /// Keeps a piece of the held answer's body.
    /// - Returns: `nil` if no answer is held; else whether to read on.
    mutating func hold(_ piece: Span<UInt8>) -> Bool? {
        guard case .refused(var answer) = state else { return nil }
        // The state must not share the answer while it grows, or its body would be copied.
        state = .deciding
        let goesOn = answer.append(piece)
        state = .refused(answer)
        return goesOn
    }

    // MARK: The end

    /// - Parameters:
    ///   - isTokenRefused: whether the trailers refuse the token, and a newer token may help.
    ///   - canSendAgain: whether the body sent so far is kept.
    ///   - token: token of the request; `nil` without one.
    mutating func ended(
        _ end: UpstreamEnd, isTokenRefused: Bool = false, canSendAgain: Bool, token: AccessToken?
    ) -> Action {
        if let outcome {
            self.outcome = nil
            return outcome
        }
        switch state {
        case .refused(let answer): return sendAfterRefusal(answer, end, token)
        case .announced(var answer) where end.error == nil:
            pause = .none
            if isTokenRefused, canSendAgain { return sendAfterRefusal(answer, end, token) }
            answer.trailers = end.trailers
            return .pass(answer)
        case .answered, .switched:
            guard let error = end.error else { return .finish }
            return .cut(because: Problem(error).row.error, code: end.code)
        case .deciding, .delayed, .collecting, .awaitingToken, .asked, .announced, .greeted, .connected, .tunnelled:
            break
        }
        guard let error = end.error else { return .fail(Problem(.responseCut)) }
        if error.kind == .http2Missing { return .sendAgain(newConnection: false) }
        if error.kind == .withheld, canSendAgain, attempts.renewals < Attempts.maxRenewals {
            attempts.renewals += 1
            return token == nil ? .fail(.noCredential) : .awaitToken(insteadOf: nil)
        }
        let isStale = error.kind == .connectionLost && end.wasReused
        if isStale && mayRepeat || end.isUnprocessed && !attempts.isRetried, canSendAgain {
            attempts.isRetried = true
            return .sendAgain(newConnection: !end.isUnprocessed)
        }
        return .fail(Problem(error))
    }

    /// Whether the request may be sent again although the upstream may have processed it.
    var mayRepeat: Bool { request.isIdempotent && !attempts.isRetried }

    /// Sends the request again after a held answer: at once with that answer's nonce, or after a wait for a new token.
    mutating func sendAfterRefusal(
        _ held: HeldAnswer, _ end: UpstreamEnd, _ token: AccessToken?
    ) -> Action {
        if attempts.wantsNonce {
            attempts.wantsNonce = false
            attempts.hasNonce = true
            return .sendAgain(newConnection: false)
        }
        attempts.isReplayed = true
        if end.error?.kind != .aborted {
            var held = held
            held.trailers = end.trailers
            if end.error != nil { held.isWhole = false }
            state = .refused(held)
        }
        return .awaitToken(insteadOf: token)
    }

    /// Whether the program's connection can carry another request after this answer.
    @inline(__always)
    func keepsConnection(isRequestComplete: Bool) -> Bool {
        request.keepsAlive && (isRequestComplete || request.isHTTP2)
    }

    /// Whether the program's connection can carry another request after an answer of the proxy. Not over HTTP/1.0, and
    /// not after an unread body, which would be read as the next request. Over HTTP/2, a fault ends its own stream only.
    /// - Parameter closes: whether the answer itself closes the connection.
    func keepsConnection(behindOwn closes: Bool, isRequestComplete: Bool, mustClose: Bool) -> Bool {
        let endsByAnswer = closes && !request.isHTTP2 || mustClose || request.isHTTP10
        return !endsByAnswer && keepsConnection(isRequestComplete: isRequestComplete)
    }
}
