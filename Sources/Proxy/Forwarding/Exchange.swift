import CurlTransport
import HTTPMessage
import Heimdallr

/// The decisions of one request's life, without I/O: takes events, returns actions. Each request is a new value.
///
/// `Exchange+Answer` takes what the upstream says, `Exchange+Time` has deadlines and pauses.
struct Exchange {
    struct Request: Equatable {
        var isHead = false
        var version = HTTPVersion.http11
        var isHTTP10: Bool { version == .http10 }
        var isIdempotent = false
        var framing = BodyFraming.none
        var expectsContinue = false
        /// The client keeps the connection open after the answer.
        var keepsAlive = false
        /// An offer of other protocols is passed on.
        var offersUpgrade = false
        /// A 401 is answered with a new token, once.
        var replaysUnauthorized = false
        var isGRPC = false
    }

    /// Progress of the request, with the data of each state. Held answers are `indirect`, because they are rare and large.
    enum State {
        /// The phases before *send*; nothing is waited for.
        case deciding
        /// The refusal of a wrong password is delayed.
        case held
        case collecting
        /// - Parameter instead: 401 that the client gets if no token comes.
        indirect case awaitingToken(instead: HeldAnswer?)
        case asked(Asked)
        /// The upstream answered 401. The client sees it only if no new token comes.
        indirect case refused(HeldAnswer)
        /// The head of a gRPC call's answer has come without a status. It is held for the rest of the loop's turn: trailers
        /// that come at once may refuse the token.
        indirect case announced(HeldAnswer)
        /// - Parameter framing: of the answer's body for the client.
        case answered(framing: BodyFraming)
        case switched(Switched)
        /// The ClientHello of a redirected connection has begun.
        case greeted
        /// CONNECT was answered, and the client's first bytes decide.
        indirect case connected(Authority, tls: TLSInside)
        /// - Parameter isAnswered: the client has the 200.
        case tunnelled(isAnswered: Bool)
    }

    struct Asked {
        var isContinued = false
        /// The upstream waits for the client's next bytes.
        var awaitsBody = false
        /// A piece of the body has gone out.
        var hasBody = false
    }

    struct Switched {
        /// The client ended its side, and the upstream can't be told.
        var isLeaving = false
        var hasUpstreamEnded = false
    }

    /// Pause of a transfer, in addition to the state's own wait.
    enum Pause {
        case none
        /// The client must take some of the answer.
        case room
        /// Other connections have their turn.
        case turn
    }

    /// Earlier attempts.
    struct Attempts {
        var isResent = false
        var isReplayed = false
        var wantsNonce = false
        var hasNonce = false
        /// Number of tokens that expired before the request was sent.
        var renewals = 0
        static let maxRenewals = 3
    }

    var request = Request()
    var state = State.deciding
    var attempts = Attempts()
    var pause = Pause.none
    /// Set when the deadline has to be set again.
    var hasNewTime = false
    /// A decision made within a call of the upstream's stream. `ended` returns it.
    var outcome: Action?
    /// Status of a gRPC call; `nil` for other requests, and before it is known.
    var callStatus: GRPCStatus?
    /// The answer of a gRPC call has not said yet whether the server accepted the token.
    var awaitsStatus = false

    // MARK: What is asked of it

    /// Whether the head of the final answer, or of 101, was written to the client.
    @inline(__always) var isAnswered: Bool {
        switch state {
        case .answered, .switched, .connected: true
        case .tunnelled(let isAnswered): isAnswered
        case .deciding, .held, .collecting, .awaitingToken, .asked, .refused, .announced, .greeted: false
        }
    }

    /// Whether a server has had the request before.
    var isSentAgain: Bool { attempts.isReplayed || attempts.isResent || attempts.hasNonce }

    var isSwitched: Bool { if case .switched = state { true } else { false } }
    var isCollecting: Bool { if case .collecting = state { true } else { false } }
    /// Whether an HTTP answer waits for the proxy, the upstream or the token endpoint, and not for room at the client.
    /// Called only for clients that have ended their side.
    var awaitsOthers: Bool {
        switch state {
        case .deciding, .collecting, .awaitingToken, .asked, .refused, .announced, .answered: pause != .room
        case .held, .switched, .greeted, .connected, .tunnelled: false
        }
    }

    // MARK: Before the upstream

    /// The refusal of the user waits.
    mutating func hold() {
        state = .held
        hasNewTime = true
    }

    /// The delay is over.
    mutating func goOn() { state = .deciding }

    /// The request goes to an upstream.
    mutating func forward(_ admitted: Admitted) {
        request.offersUpgrade = admitted.upgrade != nil
        if admitted.isLast { request.keepsAlive = false }
    }

    /// TLS has begun without a CONNECT.
    mutating func greet() -> Action {
        state = .greeted
        hasNewTime = true
        return .readHello
    }

    /// Handles a complete ClientHello, which replaces a CONNECT.
    mutating func heardHello(_ request: Request) {
        self.request = request
        state = .deciding
        hasNewTime = true
    }

    /// CONNECT is answered with 200 before anything is dialled.
    mutating func connect(to authority: Authority, tls: TLSInside) {
        state = .connected(authority, tls: tls)
        hasNewTime = true
    }

    /// Handles the client's first byte inside CONNECT. It begins a TLS handshake's record (RFC 8446, section 5.1), or HTTP.
    func firstByteCame(_ byte: UInt8) -> Action {
        guard case .connected(let authority, let tls) = state else { return .wait }
        guard byte == 0x16 else { return .serveInside(authority, .http) }
        return switch tls {
        case .refused: .endConnect(.connectRefused)
        case .tunnelled: .openTunnel(authority)
        case .intercepted: .serveInside(authority, .https)
        }
    }

    /// - Parameter isRedirected: the client expects no answer of HTTP.
    mutating func tunnel(isRedirected: Bool) {
        request.keepsAlive = false
        state = .tunnelled(isAnswered: isAnswered && !isRedirected)
    }

    /// The whole body is read and kept first.
    mutating func collect() { state = .collecting }

    mutating func collected() {
        state = .deciding
        hasNewTime = true
    }

    /// Waits for a token: for the first try, another try, or in place of a 401.
    mutating func awaitToken() {
        hasNewTime = true
        let refusal: HeldAnswer? = if case .refused(let answer) = state { answer } else { nil }
        state = .awaitingToken(instead: refusal)
    }

    /// Handles a token, or the error in its place.
    /// - Parameters:
    ///   - hasDoubted: a token exists, but it is suspect at this upstream. It is sent rather than an error, but not in
    ///     place of a held 401.
    ///   - problem: the answer to the client in case of the error.
    mutating func tokenArrived(
        _ error: HeimdallrError?, hasDoubted: Bool, _ problem: Problem
    ) -> Action {
        guard case .awaitingToken(let instead) = state else { return .wait }
        state = .deciding
        let isFresh = attempts.isResent && !attempts.isReplayed
        guard let error else { return .send(fresh: isFresh) }
        if instead != nil, error == .needsAuthentication { return .fail(problem) }
        if let instead, instead.isWhole { return .pass(instead) }
        return hasDoubted && !attempts.isReplayed ? .sendDoubted(fresh: isFresh) : .fail(problem)
    }

    mutating func ask() {
        state = .asked(Asked())
        hasNewTime = true
    }

    // MARK: The client

    /// The upstream has asked for a piece of the request's body.
    mutating func bodyAsked(isThere: Bool) {
        if case .asked(var asked) = state {
            asked.awaitsBody = !isThere
            if isThere { asked.hasBody = true }
            state = .asked(asked)
        }
        if isThere || !isAnswered { hasNewTime = true }
    }

    /// More of the body has come, or its end.
    func bodyArrived() -> Action {
        if case .connected = state { return .lookInside }
        if case .greeted = state { return .readHello }
        return isCollecting ? .collectBody : .resumeUpload
    }

    func failed(_ problem: Problem) -> Action { isAnswered ? .cut(because: problem.error) : .fail(problem) }

    /// Notes a problem within a call of the upstream's stream, which then ends.
    mutating func stop(_ problem: Problem) { outcome = failed(problem) }

    /// Notes within such a call that the client is gone.
    mutating func clientGone() { outcome = .leave(closes: false) }
}
