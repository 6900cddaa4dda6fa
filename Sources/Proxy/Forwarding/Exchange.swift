import Configuration
import CurlTransport
import HTTPMessage
import Heimdallr

/// The decisions about one request, without I/O: takes events, returns actions. Each request is a new value.
///
/// Every change is made here. `Exchange+State` has the values and the questions, `Exchange+Time` what a deadline does.
struct Exchange {
    private(set) var request: Request
    private(set) var state = State.deciding
    private(set) var attempts = Attempts()
    private(set) var pause = Pause.none
    /// Whether the deadline has to be set again.
    private var hasNewTime = false
    /// Action decided during a call from the upstream's stream. `ended` returns it.
    private var outcome: Action?
    /// Whether the answer is a stream of events, which may come rarely.
    private(set) var isEventStream = false
    /// Status of a gRPC call; `nil` for other requests, and before the status is known.
    private(set) var callStatus: GRPCStatus?
    /// Whether a gRPC call's answer does not show yet whether the server accepted the token.
    private var awaitsStatus = false

    init(_ request: Request = Request()) { self.request = request }

    // MARK: Before the upstream

    /// Begins a state whose wait has its own deadline.
    private mutating func wait(in state: State) {
        self.state = state
        hasNewTime = true
    }

    /// Delays the 407 for a wrong password.
    mutating func delay() { wait(in: .delayed) }

    /// Ends the delay of the 407.
    mutating func endDelay() { state = .deciding }

    /// Notes that the request was admitted and goes to an upstream.
    mutating func forward(_ admitted: Admitted) {
        request.replaysUnauthorized = admitted.rule?.settings.onUnauthorized == .replay
        request.offersUpgrade = admitted.upgrade != nil
        let isRead = request.offersUpgrade || admitted.rule?.issues == true
        request.awaitsWholeBody = isRead && request.framing.hasContent
        if admitted.isLast, !admitted.staysIfIgnored { request.keepsAlive = false }
    }

    /// Begins the reading of a ClientHello that came without a CONNECT.
    mutating func greet() -> Action {
        wait(in: .greeted)
        return .readHello
    }

    /// Handles a complete ClientHello. `request` is the CONNECT that the proxy made for it.
    mutating func helloCame(_ request: Request) {
        self.request = request
        wait(in: .deciding)
    }

    /// Notes that CONNECT gets its 200 without a dial.
    mutating func connect(to authority: Authority, tls: TLSInside) { wait(in: .connected(authority, tls: tls)) }

    /// - Parameter isRedirected: whether the connection was redirected: its program has received no 200.
    mutating func tunnel(isRedirected: Bool) {
        request.keepsAlive = false
        state = .tunnelled(isAnswered: isAnswered && !isRedirected)
    }

    /// Begins to read and keep the whole body before the request is sent.
    /// - Returns: whether the proxy sends 100 itself: it contacts the upstream only after it has read the whole body.
    mutating func collect() -> Bool {
        state = .collecting
        request.awaitsWholeBody = false
        defer { request.expectsContinue = false }
        return request.expectsContinue
    }

    mutating func collected() { wait(in: .deciding) }

    /// Begins a wait for a token: for the first attempt, for another attempt, or after a 401.
    mutating func awaitToken() {
        let refusal: HeldAnswer? = if case .refused(let answer) = state { answer } else { nil }
        wait(in: .awaitingToken(instead: refusal))
    }

    /// Handles the end of the wait for a token.
    /// - Parameters:
    ///   - error: `nil` if a token came.
    ///   - hasSuspect: whether a suspect token exists. It is sent if no other token came, but not on a replay.
    ///   - problem: answer to the program if there is an error.
    mutating func tokenArrived(_ error: HeimdallrError?, hasSuspect: Bool, _ problem: Problem) -> Action {
        guard case .awaitingToken(let instead) = state else { return .wait }
        state = .deciding
        guard let error else { return .send(newConnection: attempts.needsNewConnection) }
        if instead != nil, error == .needsAuthentication { return .fail(problem) }
        if let instead, instead.isWhole { return .pass(instead) }
        guard hasSuspect, !attempts.hasNewToken else { return .fail(problem) }
        return .sendSuspect(newConnection: attempts.needsNewConnection)
    }

    mutating func ask() { wait(in: .asked(Asked(isBodyDue: !request.expectsContinue))) }

    // MARK: The program

    /// Notes that the upstream asked for a piece of the body. `isThere`: the program has sent such a piece.
    mutating func bodyAsked(isThere: Bool) {
        if case .asked(var asked) = state {
            asked.awaitsBody = !isThere
            if isThere { asked.isBodyDue = true }
            state = .asked(asked)
        }
        if isThere || !isAnswered { hasNewTime = true }
    }

    /// Notes a problem during a call from the upstream's stream. The stream then ends, and `ended` returns the action.
    mutating func stop(_ problem: Problem) { outcome = failed(problem) }

    /// Notes during a call from the upstream's stream that the program is gone.
    mutating func programGone() { outcome = .leave(closes: false) }

    // MARK: The answer

    mutating func judge(_ answer: borrowing ResponseHead, _ findings: Findings) -> Verdict {
        hasNewTime = true
        if answer.isInterim {
            if answer.status == 100, case .asked(var asked) = state {
                asked.isBodyDue = true
                state = .asked(asked)
            }
            return request.isHTTP10 ? .read : .forwardInterim
        }
        callStatus = findings.callStatus
        if answer.status == 101 { return request.offersUpgrade ? .switchProtocols : refuse(Problem(.unaskedUpgrade)) }
        let wantsToken = findings.isTokenRefused && request.replaysUnauthorized
        if findings.canReplay, findings.wantsNonce || wantsToken, !attempts.wasRefused {
            attempts.wantsNonce = findings.wantsNonce
            // To read on, the stream must stay open. It would then send the rest of the request's body, which may
            // exceed `max_replay_bytes`. The body of a 401 that asks for a nonce is not read: it is rarely passed on.
            let readsOn = findings.isRequestComplete && !attempts.wantsNonce
            state = .refused(HeldAnswer(head: copy answer, lacksBody: !readsOn && !request.isHead))
            return readsOn ? .read : .stop
        }
        awaitsStatus = findings.awaitsStatus
        if awaitsStatus, findings.canReplay, request.replaysUnauthorized, !attempts.wasRefused {
            state = .announced(HeldAnswer(head: copy answer))
            pause = .turn
            return .read
        }
        // 417 refuses the Expect field. Only the program can repeat the request without it.
        if answer.status == 417, request.expectsContinue { return refuse(Problem(.expectationFailed)) }
        return .forward
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
        status: Int, framing: BodyFraming, isEventStream: Bool = false, isRequestComplete: Bool, mustClose: Bool
    ) -> BodyFraming {
        self.isEventStream = isEventStream
        let isOpen = framing == .chunked || framing == .untilClose
        let framing = !isOpen ? framing : request.isHTTP10 ? .untilClose : .chunked
        // HTTP/1.0 has no chunks: the end of the connection ends the body.
        let endsByClose = isOpen && request.isHTTP10
        if mustClose || endsByClose || !isRequestComplete && leavesBodyUnread(status) { request.keepsAlive = false }
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
        if !isPassedOn, case .switched(var switched) = state {
            switched.isLeaving = true
            state = .switched(switched)
        }
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

    /// Notes a message of a gRPC call's answer.
    /// - Returns: whether it is the first sign that the server accepted the token.
    mutating func messageCame() -> Bool {
        defer { awaitsStatus = false }
        return awaitsStatus
    }

    /// Notes the status of a gRPC call, from the trailers or from the proxy.
    /// - Returns: whether nothing had shown yet whether the server accepted the token.
    @discardableResult
    mutating func statusCame(_ status: GRPCStatus) -> Bool {
        callStatus = status
        return messageCame()
    }

    // MARK: The end

    /// - Parameters:
    ///   - isTokenRefused: whether the trailers refuse the token, and a newer token may help.
    ///   - canReplay: whether the body sent so far is kept.
    ///   - token: token of the request; `nil` without one.
    mutating func ended(
        _ end: UpstreamEnd, isTokenRefused: Bool = false, canReplay: Bool, token: AccessToken?
    ) -> Action {
        if let outcome {
            self.outcome = nil
            return outcome
        }
        switch state {
        case .refused(let answer): return replayAfterRefusal(answer, end, token)
        case .announced(let answer) where end.error == nil:
            pause = .none
            if isTokenRefused, canReplay { return replayAfterRefusal(answer, end, token) }
            return .pass(answer.ended(by: end))
        case .answered, .switched:
            guard let error = end.error else { return .finish }
            return .cut(because: Problem(error).row.error, code: end.code)
        case .deciding, .delayed, .collecting, .awaitingToken, .asked, .announced, .greeted, .connected, .tunnelled:
            break
        }
        guard let error = end.error else { return .fail(Problem(.responseCut)) }
        if error.kind == .http2Missing { return .replay(newConnection: false) }
        guard canReplay else { return .fail(Problem(error)) }
        if error.kind == .withheld, attempts.renew() {
            return token == nil ? .fail(Problem(.noCredential)) : .awaitToken(insteadOf: nil)
        }
        let isStale = error.kind == .connectionLost && end.wasReused && request.isIdempotent
        guard isStale || end.isUnprocessed, attempts.replayOnNewConnection() else { return .fail(Problem(error)) }
        return .replay(newConnection: !end.isUnprocessed)
    }

    /// Replays the request after a held answer: at once with that answer's nonce, or after a wait for a new token.
    mutating func replayAfterRefusal(_ held: HeldAnswer, _ end: UpstreamEnd, _ token: AccessToken?) -> Action {
        if attempts.replayAfterRefusal() { return .replay(newConnection: false) }
        if end.error?.kind != .aborted { state = .refused(held.ended(by: end)) }
        return .awaitToken(insteadOf: token)
    }

    // MARK: Time

    /// Returns the party whose deadline must be set now; `nil` for none. While the program has to take a part of the
    /// answer, the program's stream sets the deadline itself (`ServerConnection.waitForProgram`).
    mutating func takeNewTime() -> Patience? {
        defer { hasNewTime = false }
        return hasNewTime && pause != .room ? patience : nil
    }

    /// Drops the deadline and the pause of an ended request.
    mutating func settle() { (hasNewTime, pause) = (false, .none) }

    /// Notes that bytes passed in either direction, so the deadline begins anew.
    mutating func pieceCame() { hasNewTime = true }

    /// Notes that the program takes no more of the answer for now.
    mutating func roomIsGone() { if pause == .none { pause = .room } }

    /// Notes that the request's share of the loop's turn is spent.
    mutating func shareIsSpent() { pause = .turn }

    /// Ends the pause of an answer or of the reading of a body.
    mutating func resume() {
        if pause == .room { hasNewTime = true }
        pause = .none
    }
}
