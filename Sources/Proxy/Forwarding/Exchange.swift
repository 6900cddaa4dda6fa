import CurlTransport
import HTTPMessage
import Heimdallr

/// The decisions of one request's life, without I/O: what happened goes in, what to do comes out. Each request is a new
/// value.
struct Exchange {
    /// What the request is.
    struct Request: Equatable {
        var isHead = false
        var isHTTP10 = false
        var isIdempotent = false
        var framing = BodyFraming.none
        var expectsContinue = false
        /// The client keeps the connection open after the answer.
        var keepsAlive = false
        /// It offers other protocols, and the offer is passed on.
        var offersUpgrade = false
        /// A 401 is answered with a new token, once.
        var replaysUnauthorized = false
    }

    /// How far it is, with what belongs to it.
    enum State {
        /// It is being judged, or it is being found out whose it is.
        case judged
        /// For as long as a wrong password's refusal is held back.
        case held
        /// All of the request's body is read before it goes on.
        case collecting
        /// - Parameter instead: of this answer; it is the client's if no token comes.
        case awaitingToken(instead: HeldAnswer?)
        /// The upstream has it, or will once there is a connection.
        case asked(Asked)
        /// The upstream's answer is a 401 that the client sees only if no new token is to be had.
        case refused(HeldAnswer)
        /// The answer's head was written.
        case answered(Answered)
        /// Bytes pass both ways, and mean nothing to us.
        case switched(Switched)
        /// CONNECT: the other end is being connected to, or is.
        case tunnelled
    }

    struct Asked {
        /// 100 has come.
        var isContinued = false
        /// The client's next bytes are waited for.
        var awaitsBody = false
        /// Some of the request's body was taken.
        var hasBody = false
    }

    struct Answered {
        /// How the client is told where the answer's body ends.
        var framing: BodyFraming
        /// It can't be told from a cut one but by closing.
        var endsByClose: Bool
    }

    struct Switched {
        /// The client has ended its side, and the upstream can't be told.
        var isLeaving = false
        /// The upstream has ended its side.
        var hasUpstreamEnded = false
    }

    var request = Request()
    private(set) var state = State.judged
    private(set) var isResent = false
    private(set) var isReplayed = false
    /// The 401 that is held only wants a nonce.
    private var wantsNonce = false
    private(set) var hasNonce = false
    /// How often its token expired before it could be sent.
    private var renewals = 0
    private static let maxRenewals = 3

    // MARK: What is asked of it

    /// The head of the final answer, or 101's, was written to the client.
    @inline(__always) var isAnswered: Bool {
        switch state {
        case .answered, .switched: true
        case .judged, .held, .collecting, .awaitingToken, .asked, .refused, .tunnelled: false
        }
    }

    /// The upstream has had the request before, or a server that wanted a nonce.
    var isSentAgain: Bool { isReplayed || isResent || hasNonce }

    var isCollecting: Bool { if case .collecting = state { true } else { false } }
    var isAwaitingToken: Bool { if case .awaitingToken = state { true } else { false } }
    var isSwitched: Bool { if case .switched = state { true } else { false } }
    /// HTTP goes on: neither another protocol nor a tunnel, and no refusal that is held back.
    var isForAnswer: Bool {
        switch state {
        case .judged, .collecting, .awaitingToken, .asked, .refused, .answered: true
        case .held, .switched, .tunnelled: false
        }
    }
    var isHeld: Bool { if case .held = state { true } else { false } }
    /// The upstream's 401 is held back.
    var isRefused: Bool { if case .refused = state { true } else { false } }

    /// How the client is told where the answer's body ends; `nil` before the answer's head is out.
    var answerFraming: BodyFraming? {
        switch state {
        case .answered(let answered): answered.framing
        case .switched: .untilClose
        case .judged, .held, .collecting, .awaitingToken, .asked, .refused, .tunnelled: nil
        }
    }

    /// Whom the request waits for, and so for how long.
    enum Patience: Equatable {
        /// Nothing, or something with a deadline of its own.
        case none
        /// A wrong password's refusal is due.
        case guess
        /// The upstream has to answer.
        case response
        /// The client has to send more of the request's body.
        case requestBody
        /// The upstream has to send more of its answer, or either side of another protocol something.
        case upstream
        /// The client has to go on with another protocol, or to end.
        case client
        /// The upstream has to end.
        case farewell
        /// Bytes have to pass, either way.
        case tunnel
    }

    var patience: Patience {
        switch state {
        case .judged, .awaitingToken: .none
        case .collecting: .requestBody
        case .held: .guess
        // Who may wait for 100 with the body waits for the upstream.
        case .asked(let asked):
            asked.awaitsBody && (asked.hasBody || asked.isContinued || !request.expectsContinue)
                ? .requestBody : .response
        case .refused, .answered: .upstream
        case .switched(let switched):
            switched.isLeaving ? .farewell : switched.hasUpstreamEnded ? .client : .upstream
        case .tunnelled: .tunnel
        }
    }

    /// What the client is told when its patience, or ours, is over; `nil`: it has a part of an answer, and is cut off.
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
    ///
    /// - Parameter isRequestComplete: the request's body has been taken off it.
    @inline(__always)
    func keepsConnection(isRequestComplete: Bool) -> Bool {
        guard request.keepsAlive, isRequestComplete else { return false }
        guard case .answered(let answered) = state else { return true }
        return !answered.endsByClose
    }

    /// The same behind an answer of our own. HTTP/1.0 has no way to keep the connection but a field that problems don't
    /// carry, and what is left of the request's body would be taken for the next request.
    func keepsConnection(behind problem: Problem, isRequestComplete: Bool) -> Bool {
        !problem.closes && request.keepsAlive && isRequestComplete && !request.isHTTP10
    }

    // MARK: What happens to it

    /// Its refusal is held back.
    mutating func hold() { state = .held }

    /// The time of that is over, or the users are known.
    mutating func judge() { state = .judged }

    mutating func tunnel() {
        request.keepsAlive = false
        state = .tunnelled
    }

    /// Its body is read, and kept, before anything is asked for.
    mutating func collect() { state = .collecting }

    /// A token is waited for: for the first try, for one that is sent again, or instead of a 401.
    mutating func awaitToken() {
        if case .refused(let answer) = state {
            state = .awaitingToken(instead: answer)
        } else {
            state = .awaitingToken(instead: nil)
        }
    }

    enum TokenStep {
        /// - Parameter fresh: on a connection of its own.
        case send(fresh: Bool)
        /// With the token that is at hand, although it is doubted.
        case sendDoubted(fresh: Bool)
        /// The 401 is the answer after all.
        case pass(HeldAnswer)
        case refuse
    }

    /// A token is there; or none is to be had, for the reason `error`.
    ///
    /// - Parameter hasDoubted: there is one that is only suspect at this upstream. Nobody's request fails because a
    ///   token was doubted; but where a sign-in is wanted, it is asked for.
    mutating func tokenArrived(_ error: HeimdallrError?, hasDoubted: Bool) -> TokenStep {
        guard case .awaitingToken(let instead) = state else { return .refuse }
        state = .judged
        let isFresh = isResent && !isReplayed
        guard let error else { return .send(fresh: isFresh) }
        if instead != nil, error == .needsAuthentication { return .refuse }
        if let instead, instead.isWhole { return .pass(instead) }
        return hasDoubted && !isReplayed ? .sendDoubted(fresh: isFresh) : .refuse
    }

    /// The upstream is given the request.
    mutating func ask() { state = .asked(Asked()) }

    /// A piece of the request's body is wanted: it was there, or it is waited for.
    mutating func bodyAsked(isThere: Bool) {
        guard case .asked(var asked) = state else { return }
        asked.awaitsBody = !isThere
        if isThere { asked.hasBody = true }
        state = .asked(asked)
    }

    /// What to do with the head of an answer.
    enum Verdict: Equatable {
        case forward
        /// Passed to the client before the answer proper.
        case forwardInterim
        case dropInterim
        /// A 401 that a new token may cure: the client does not see it yet.
        case hold
        /// 101: from here on it is another protocol.
        case switchProtocols
        case refuse(Problem)
    }

    /// - Parameters:
    ///   - isTokenRefused: a 401 that a newer token may cure (rule 7).
    ///   - wantsNonce: a 401 that the nonce in it may cure.
    ///   - canSendAgain: the body so far is still at hand.
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
        // It would have to be sent again without the expectation.
        if answer.status == 417, request.expectsContinue { return .refuse(.expectationFailed) }
        return .forward
    }

    /// The answer's head goes out. Decides how its body is framed towards the client.
    ///
    /// - Parameter isRequestComplete: the request's body has been taken off the client's connection.
    /// - Returns: how its body is framed.
    mutating func answer(status: Int, framing: BodyFraming, isRequestComplete: Bool) -> Answered {
        // The rest of the body will not be asked for: sending stops at a refusal, and does not begin while 100 is
        // waited for.
        var isContinued = false
        if case .asked(let asked) = state { isContinued = asked.isContinued }
        if !isRequestComplete, status >= 400 || request.expectsContinue && !isContinued { request.keepsAlive = false }
        var answered = Answered(framing: framing, endsByClose: false)
        switch framing {
        case .none, .length: break
        case .chunked, .untilClose:
            answered.framing = request.isHTTP10 ? .untilClose : .chunked
            answered.endsByClose = request.isHTTP10
        }
        state = .answered(answered)
        return answered
    }

    /// The upstream has agreed, and the client is told so.
    mutating func switchProtocols() {
        request.keepsAlive = false
        state = .switched(Switched())
    }

    /// The client of another protocol has ended its side, and that end could not be passed on.
    mutating func leave() {
        guard case .switched(var switched) = state else { return }
        switched.isLeaving = true
        state = .switched(switched)
    }

    /// The upstream has ended its side of another protocol.
    mutating func upstreamEnded() {
        guard case .switched(var switched) = state else { return }
        switched.hasUpstreamEnded = true
        state = .switched(switched)
    }

    /// A piece of the 401 that is held.
    /// - Returns: whether it is worth reading on; `nil`: none is held.
    mutating func hold(_ piece: Span<UInt8>) -> Bool? {
        guard case .refused(var answer) = state else { return nil }
        // Out of the state while it grows, so that it is not copied.
        state = .judged
        let goesOn = answer.append(piece)
        state = .refused(answer)
        return goesOn
    }

    /// That 401 is over.
    ///
    /// - Parameter isWhole: all of it is there.
    mutating func holdEnd(trailers: [(name: [UInt8], value: [UInt8])], isWhole: Bool) {
        guard case .refused(var answer) = state else { return }
        answer.trailers = trailers
        if !isWhole { answer.isWhole = false }
        state = .refused(answer)
    }

    /// What to do when the exchange with the upstream is over.
    enum Ending: Equatable {
        /// The answer is whole.
        case complete
        /// The connection died before it answered: once more, on a fresh one.
        case resend
        /// A new token, and once more.
        case replay
        /// The same once more, with the nonce.
        case sendWithNonce
        /// Nothing was sent: a current token, and on with it.
        case renew
        /// Nothing was sent: once more, over HTTP/1.1.
        case sendByHTTP1
        case problem(Problem)
        /// The client has a part of the answer: only a closed connection says that it is not all.
        case cut
    }

    /// - Parameter canSendAgain: the connection had served others before, and the request's body is at hand.
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
