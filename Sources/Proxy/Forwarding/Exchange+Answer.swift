import CurlTransport
import HTTPMessage
import Heimdallr

// The upstream's answer, and the end of its side.
extension Exchange {
    /// Findings of the phase *judge* about an answer.
    struct Findings {
        /// A newer token may cure the refusal (rule 7).
        var isTokenRefused = false
        /// The status of a gRPC call follows, and may refuse the token.
        var awaitsStatus = false
        /// The nonce in the 401 may cure it (RFC 9449, section 9).
        var wantsNonce = false
        /// The body so far is kept.
        var canSendAgain = false
        var isRequestComplete = false
    }

    enum Verdict: Equatable {
        case forward
        /// An interim answer, which the client gets.
        case forwardInterim
        /// The client gets nothing, and reading goes on: an interim answer for HTTP/1.0, or a 401 that is held.
        case read
        case switchProtocols
        /// The upstream's side ends now; `ended` says what follows.
        case stop
    }

    mutating func judge(_ answer: borrowing ResponseHead, _ findings: Findings) -> Verdict {
        hasNewTime = true
        if answer.isInterim {
            if answer.status == 100, case .asked(var asked) = state {
                asked.isContinued = true
                state = .asked(asked)
            }
            return request.isHTTP10 ? .read : .forwardInterim
        }
        if answer.status == 101 { return request.offersUpgrade ? .switchProtocols : refuse(.unaskedUpgrade) }
        let wantsNonce = findings.wantsNonce && !attempts.hasNonce
        let wantsToken = findings.isTokenRefused && request.replaysUnauthorized && !attempts.isReplayed
        if findings.canSendAgain, wantsNonce || wantsToken {
            attempts.wantsNonce = wantsNonce
            return hold(HeldAnswer(head: copy answer), findings)
        }
        awaitsStatus = findings.awaitsStatus
        if awaitsStatus, findings.canSendAgain, request.replaysUnauthorized, !attempts.isReplayed {
            state = .announced(HeldAnswer(head: copy answer))
            pause = .turn
            return .read
        }
        // The program expects 100 and would wait for it again; only it can leave the expectation out.
        if answer.status == 417, request.expectsContinue { return refuse(.expectationFailed) }
        return .forward
    }

    /// The client gets `problem` in place of the answer.
    mutating func refuse(_ problem: Problem) -> Verdict {
        stop(problem)
        return .stop
    }

    private mutating func hold(_ answer: HeldAnswer, _ findings: Findings) -> Verdict {
        var answer = answer
        // To read on would send the rest of the request's body to an upstream that has refused it, past
        // `max_replay_bytes`. A 401 that only asks for a nonce is rarely passed on, so its body is not read.
        let readsOn = findings.isRequestComplete && !attempts.wantsNonce
        if !readsOn, !request.isHead, answer.head.framing != .none, answer.head.framing != .length(0) {
            answer.isWhole = false
        }
        state = .refused(answer)
        return readsOn ? .read : .stop
    }

    /// The held head of a gRPC call's answer, which goes out now; `nil`: none is held.
    mutating func release() -> HeldAnswer? {
        guard case .announced(let answer) = state else { return nil }
        state = .deciding
        return answer
    }

    /// The answer's head goes out. Decides whether the client's connection stays.
    /// - Parameters:
    ///   - isRequestComplete: the request's body has been read.
    ///   - mustClose: the listener or the process is ending.
    /// - Returns: the framing of the answer's body for the client.
    mutating func answer(
        status: Int, framing: BodyFraming, isRequestComplete: Bool, mustClose: Bool
    ) -> BodyFraming {
        // The rest of the body is not read: the upstream has refused it, or answered before its first byte was sent.
        var hasBegun = !request.expectsContinue
        if case .asked(let asked) = state, asked.isContinued || asked.hasBody { hasBegun = true }
        if !isRequestComplete, status >= 400 || !hasBegun { request.keepsAlive = false }
        if mustClose { request.keepsAlive = false }
        var framing = framing
        if framing == .chunked || framing == .untilClose {
            // To HTTP/1.0, only the connection's end marks the end of the body.
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

    /// The client of another protocol ended its side.
    /// - Parameter isTold: the upstream can be told.
    mutating func clientEndedItsSide(isTold: Bool) {
        hasNewTime = true
        guard !isTold, case .switched(var switched) = state else { return }
        switched.isLeaving = true
        state = .switched(switched)
    }

    /// The upstream ended its side of another protocol.
    mutating func upstreamEndedItsSide() {
        hasNewTime = true
        guard case .switched(var switched) = state else { return }
        switched.hasUpstreamEnded = true
        state = .switched(switched)
    }

    /// Keeps a piece of the held 401.
    /// - Returns: `nil` if no 401 is held; else whether the rest is still wanted.
    mutating func hold(_ piece: Span<UInt8>) -> Bool? {
        guard case .refused(var answer) = state else { return nil }
        // Moved out of the state while it grows, to avoid a copy.
        state = .deciding
        let goesOn = answer.append(piece)
        state = .refused(answer)
        return goesOn
    }

    // MARK: The end

    /// - Parameters:
    ///   - isTokenRefused: the trailers refuse the token, and a newer one may cure that.
    ///   - canSendAgain: the body is kept.
    ///   - token: the request's; `nil`: it has none.
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
            return .cut(because: Problem(error).error, code: end.code)
        case .deciding, .held, .collecting, .awaitingToken, .asked, .announced, .greeted, .connected, .tunnelled: break
        }
        guard let error = end.error else { return .fail(Problem(TransportError(.responseTruncated, message: ""))) }
        if error.kind == .http2Missing { return .sendAgain(fresh: false) }
        if error.kind == .withheld, attempts.renewals < Attempts.maxRenewals {
            attempts.renewals += 1
            return token == nil ? .fail(.noCredential) : .awaitToken(insteadOf: nil)
        }
        let mayRepeat = error.kind == .connectionLost && end.wasReused && request.isIdempotent
        if mayRepeat || end.isUnprocessed, canSendAgain, !attempts.isResent {
            attempts.isResent = true
            return .sendAgain(fresh: !end.isUnprocessed)
        }
        return .fail(Problem(error))
    }

    mutating func sendAfterRefusal(
        _ held: HeldAnswer, _ end: UpstreamEnd, _ token: AccessToken?
    ) -> Action {
        if attempts.wantsNonce {
            attempts.wantsNonce = false
            attempts.hasNonce = true
            return .sendAgain(fresh: false)
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

    /// Whether the client's connection can carry another request behind this answer.
    @inline(__always)
    func keepsConnection(isRequestComplete: Bool) -> Bool { request.keepsAlive && isRequestComplete }

    /// The same for an answer of the proxy. Clients of HTTP/1.0 are not kept behind one, nor is an unread body, which would
    /// be taken for the next request.
    /// - Parameter closes: the answer itself ends the connection.
    func keepsConnection(behindOwn closes: Bool, isRequestComplete: Bool, mustClose: Bool) -> Bool {
        !closes && !mustClose && keepsConnection(isRequestComplete: isRequestComplete) && !request.isHTTP10
    }
}
