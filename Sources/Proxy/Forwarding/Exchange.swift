import CurlTransport
import HTTPMessage
import Heimdallr

/// The decisions of one request's life, without I/O. Takes events, returns actions. Each request is a new value.
struct Exchange {
    struct Request: Equatable {
        var isHead = false
        var isHTTP10 = false
        var isIdempotent = false
        var framing = BodyFraming.none
        var expectsContinue = false
        /// The client keeps the connection open after the answer.
        var keepsAlive = false
        /// An offer of other protocols is passed on.
        var offersUpgrade = false
        /// A 401 is answered with a new token, once.
        var replaysUnauthorized = false
    }

    /// Progress of the request, with the data of each state. A held answer is rare and large, so it is kept apart.
    enum State {
        /// Admission, which includes the check of the user.
        case judged
        /// The refusal of a wrong password is delayed.
        case held
        case collecting
        /// - Parameter instead: 401 that the client gets if no token comes.
        indirect case awaitingToken(instead: HeldAnswer?)
        case asked(Asked)
        /// The upstream answered 401. The client sees it only if no new token comes.
        indirect case refused(HeldAnswer)
        /// - Parameter framing: of the answer's body for the client.
        case answered(framing: BodyFraming)
        case switched(Switched)
        case tunnelled
    }

    struct Asked {
        var isContinued = false
        /// The upstream waits for the client's next bytes.
        var awaitsBody = false
        var hasBody = false
    }

    struct Switched {
        /// The client ended its side, and the upstream can't be told.
        var isLeaving = false
        var hasUpstreamEnded = false
    }

    var request = Request()
    private(set) var state = State.judged
    private(set) var isResent = false
    private(set) var isReplayed = false
    private var wantsNonce = false
    private(set) var hasNonce = false
    /// Number of tokens that expired before the request was sent.
    private var renewals = 0
    private static let maxRenewals = 3

    // MARK: What is asked of it

    /// Whether the head of the final answer, or of 101, was written to the client.
    @inline(__always) var isAnswered: Bool {
        switch state {
        case .answered, .switched: true
        case .judged, .held, .collecting, .awaitingToken, .asked, .refused, .tunnelled: false
        }
    }

    /// Whether a server has had the request before.
    var isSentAgain: Bool { isReplayed || isResent || hasNonce }

    var isCollecting: Bool { if case .collecting = state { true } else { false } }
    var isAwaitingToken: Bool { if case .awaitingToken = state { true } else { false } }
    var isSwitched: Bool { if case .switched = state { true } else { false } }
    /// Whether an HTTP answer is due: no other protocol, no tunnel, no delayed refusal.
    var isForAnswer: Bool {
        switch state {
        case .judged, .collecting, .awaitingToken, .asked, .refused, .answered: true
        case .held, .switched, .tunnelled: false
        }
    }
    var isHeld: Bool { if case .held = state { true } else { false } }
    var isRefused: Bool { if case .refused = state { true } else { false } }

    /// Framing of the answer's body for the client; `nil` before the answer's head.
    var answerFraming: BodyFraming? {
        switch state {
        case .answered(let framing): framing
        case .switched: .untilClose
        case .judged, .held, .collecting, .awaitingToken, .asked, .refused, .tunnelled: nil
        }
    }

    // MARK: What happens to it

    mutating func hold() { state = .held }

    /// The request goes to an upstream.
    mutating func forward(_ admitted: Admitted) {
        request.offersUpgrade = admitted.upgrade != nil
        if admitted.isLast { request.keepsAlive = false }
    }

    /// The delay is over, or the users' secrets have been read.
    mutating func judge() { state = .judged }

    mutating func tunnel() {
        request.keepsAlive = false
        state = .tunnelled
    }

    /// The whole body is read and kept first.
    mutating func collect() { state = .collecting }

    /// Waits for a token: for the first try, another try, or in place of a 401.
    mutating func awaitToken() {
        if case .refused(let answer) = state {
            state = .awaitingToken(instead: answer)
        } else {
            state = .awaitingToken(instead: nil)
        }
    }

    enum TokenStep {
        /// - Parameter fresh: on a new connection.
        case send(fresh: Bool)
        /// With the current token, although it is suspect.
        case sendDoubted(fresh: Bool)
        case pass(HeldAnswer)
        case refuse
    }

    /// A token has come, or `error` says why not.
    /// - Parameter hasDoubted: a token exists that is only suspect at this upstream. It is better than an error, unless
    ///   a sign-in is needed.
    mutating func tokenArrived(_ error: HeimdallrError?, hasDoubted: Bool) -> TokenStep {
        guard case .awaitingToken(let instead) = state else { return .refuse }
        state = .judged
        let isFresh = isResent && !isReplayed
        guard let error else { return .send(fresh: isFresh) }
        if instead != nil, error == .needsAuthentication { return .refuse }
        if let instead, instead.isWhole { return .pass(instead) }
        return hasDoubted && !isReplayed ? .sendDoubted(fresh: isFresh) : .refuse
    }

    mutating func ask() { state = .asked(Asked()) }

    mutating func bodyAsked(isThere: Bool) {
        guard case .asked(var asked) = state else { return }
        asked.awaitsBody = !isThere
        if isThere { asked.hasBody = true }
        state = .asked(asked)
    }

    enum Verdict: Equatable {
        case forward
        /// Pass to the client before the final answer.
        case forwardInterim
        case dropInterim
        /// Hold a 401 that a new token may cure.
        case hold
        case switchProtocols
        case refuse(Problem)
    }

    /// - Parameters:
    ///   - isTokenRefused: a newer token may cure the 401 (rule 7).
    ///   - wantsNonce: the nonce in the 401 may cure it.
    ///   - canSendAgain: the body so far is kept.
    mutating func judge(
        _ answer: borrowing ResponseHead, isTokenRefused: Bool, wantsNonce: Bool = false, canSendAgain: Bool
    ) -> Verdict {
        if answer.isInterim {
            if answer.status == 100, case .asked(var asked) = state {
                asked.isContinued = true
                state = .asked(asked)
            }
            return request.isHTTP10 ? .dropInterim : .forwardInterim
        }
        if answer.status == 101 { return request.offersUpgrade ? .switchProtocols : .refuse(.unaskedUpgrade) }
        if wantsNonce, !hasNonce, canSendAgain {
            self.wantsNonce = true
            state = .refused(HeldAnswer(copy answer))
            return .hold
        }
        if isTokenRefused, request.replaysUnauthorized, !isReplayed, canSendAgain {
            state = .refused(HeldAnswer(copy answer))
            return .hold
        }
        // A retry would have to omit the expectation.
        if answer.status == 417, request.expectsContinue { return .refuse(.expectationFailed) }
        return .forward
    }

    /// The answer's head goes out. Decides whether the client's connection stays.
    /// - Parameters:
    ///   - isRequestComplete: the request's body has been read.
    ///   - mustClose: the listener or the process is ending.
    /// - Returns: the framing of the answer's body for the client.
    mutating func answer(
        status: Int, framing: BodyFraming, isRequestComplete: Bool, mustClose: Bool
    ) -> BodyFraming {
        // The rest of the body is not read: sending stops at a refusal, and does not begin before 100.
        var isContinued = false
        if case .asked(let asked) = state { isContinued = asked.isContinued }
        if !isRequestComplete, status >= 400 || request.expectsContinue && !isContinued { request.keepsAlive = false }
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

    /// The client of another protocol ended its side, and the upstream can't be told.
    mutating func leave() {
        guard case .switched(var switched) = state else { return }
        switched.isLeaving = true
        state = .switched(switched)
    }

    /// The upstream ended its side of another protocol.
    mutating func upstreamEnded() {
        guard case .switched(var switched) = state else { return }
        switched.hasUpstreamEnded = true
        state = .switched(switched)
    }

    /// Keeps a piece of the held 401.
    /// - Returns: whether to read on; `nil`: no 401 is held.
    mutating func hold(_ piece: Span<UInt8>) -> Bool? {
        guard case .refused(var answer) = state else { return nil }
        // Moved out of the state while it grows, to avoid a copy.
        state = .judged
        let goesOn = answer.append(piece)
        state = .refused(answer)
        return goesOn
    }

    /// - Parameter isWhole: the whole body was received.
    mutating func holdEnd(trailers: [(name: [UInt8], value: [UInt8])], isWhole: Bool) {
        guard case .refused(var answer) = state else { return }
        answer.trailers = trailers
        if !isWhole { answer.isWhole = false }
        state = .refused(answer)
    }

    enum Ending: Equatable {
        case complete
        /// The connection died before an answer: send again on a new one.
        case resend
        case replay
        case sendWithNonce
        /// Nothing was sent: get a current token and send.
        case renew
        /// Nothing was sent: send over HTTP/1.1.
        case sendByHTTP1
        case problem(Problem)
        /// The client has part of the answer: close the connection to show that it is incomplete.
        case cut
    }

    /// - Parameter canSendAgain: the connection had served others, and the body is kept.
    mutating func ended(_ error: TransportError?, canSendAgain: Bool) -> Ending {
        switch state {
        case .refused:
            if wantsNonce {
                wantsNonce = false
                hasNonce = true
                return .sendWithNonce
            }
            isReplayed = true
            return .replay
        case .answered, .switched: return error == nil ? .complete : .cut
        case .judged, .held, .collecting, .awaitingToken, .asked, .tunnelled: break
        }
        guard let error else { return .problem(Problem(TransportError(.responseTruncated, message: ""))) }
        if error.kind == .http2Missing { return .sendByHTTP1 }
        if error.kind == .withheld, renewals < Self.maxRenewals {
            renewals += 1
            return .renew
        }
        if error.kind == .connectionLost, request.isIdempotent, canSendAgain, !isResent {
            isResent = true
            return .resend
        }
        return .problem(Problem(error))
    }
}
