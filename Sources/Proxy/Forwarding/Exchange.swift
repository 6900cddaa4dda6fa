import CurlTransport
import HTTPMessage
import Heimdallr

/// The decisions about one request, without I/O: takes events, returns actions. Each request is a new value.
///
/// `Exchange+Answer` handles the upstream's answer, `Exchange+Time` deadlines and pauses.
struct Exchange {
    struct Request: Equatable {
        var isHead = false
        var version = HTTPVersion.http11
        var isHTTP10: Bool { version == .http10 }
        var isHTTP2: Bool { version == .http2 }
        var isIdempotent = false
        var framing = BodyFraming.none
        var expectsContinue = false
        /// The program's connection stays open after the answer.
        var keepsAlive = false
        /// An offer of other protocols is passed on to the upstream.
        var offersUpgrade = false
        /// The request is sent once its body is whole: bytes behind the body must not be taken for another protocol's.
        var awaitsWholeBody = false
        /// After a 401 that blames the token, the request is sent once more with a new token.
        var replaysUnauthorized = false
        var isGRPC = false
    }

    /// State of the request. Held answers are `indirect`, because they are rare and large.
    enum State {
        /// The request is in the phases before *send* and waits for no event.
        case deciding
        /// The 407 for a wrong password is delayed.
        case delayed
        /// The proxy reads the whole body, because the signature needs its digest.
        case collecting
        /// The request waits for a token. The program may get `instead`, a held refusal, if no token comes.
        indirect case awaitingToken(instead: HeldAnswer?)
        /// The request was given to the upstream's stream, and has no final answer yet.
        case asked(Asked)
        /// The upstream refused the token, or wants a nonce. The program gets this answer only if no new token comes.
        indirect case refused(HeldAnswer)
        /// The head of a gRPC call's answer came without a status. The proxy holds this head for the rest of the loop's
        /// turn, because trailers that follow at once may refuse the token.
        indirect case announced(HeldAnswer)
        /// - Parameter framing: framing of the answer's body for the program.
        case answered(framing: BodyFraming)
        case switched(Switched)
        /// The ClientHello of a redirected connection has begun.
        case greeted
        /// CONNECT was answered with 200. The program's first byte decides what follows.
        indirect case connected(Authority, tls: TLSInside)
        /// - Parameter isAnswered: whether the program has received the 200.
        case tunnelled(isAnswered: Bool)
    }

    struct Asked {
        var has100 = false
        /// Whether the upstream waits for the program's next bytes.
        var awaitsBody = false
        /// A piece of the body has been sent.
        var hasBody = false
    }

    struct Switched {
        /// Whether the program ended its side, and this end can't be passed on.
        var isLeaving = false
        var hasUpstreamEnded = false
    }

    /// Reason for a pause of the transfer. A pause does not change the state.
    enum Pause {
        case none
        /// The transfer waits until the program takes a part of the answer.
        case room
        /// The transfer waits for the loop's next turn, because other connections need time.
        case turn
    }

    /// Earlier attempts. A retry follows a lost connection or an unprocessed request. A replay follows a refused token.
    struct Attempts {
        var isRetried = false
        var isReplayed = false
        var wantsNonce = false
        var hasNonce = false
        /// Whether the request was sent again after a refusal. A second refusal passes, so no API gets it three times.
        var wasRefused: Bool { isReplayed || hasNonce }
        /// Number of times that the head was withheld, usually because the token expired in the wait for a connection.
        var renewals = 0
        static let maxRenewals = 3
    }

    var request = Request()
    var state = State.deciding
    var attempts = Attempts()
    var pause = Pause.none
    /// Whether the deadline has to be set again.
    var hasNewTime = false
    /// Action decided during a call from the upstream's stream. `ended` returns it.
    var outcome: Action?
    /// Whether the answer is a stream of events, which may come rarely.
    var isEventStream = false
    /// Status of a gRPC call; `nil` for other requests, and before the status is known.
    var callStatus: GRPCStatus?
    /// Whether a gRPC call's answer does not show yet whether the server accepted the token.
    var awaitsStatus = false

    // MARK: Queries

    /// Whether the head of the final answer, of a 101 or of the 200 to CONNECT was written to the program.
    @inline(__always) var isAnswered: Bool {
        switch state {
        case .answered, .switched, .connected: true
        case .tunnelled(let isAnswered): isAnswered
        case .deciding, .delayed, .collecting, .awaitingToken, .asked, .refused, .announced, .greeted: false
        }
    }

    /// Whether this is a further attempt to send the request.
    var isSentAgain: Bool { attempts.isReplayed || attempts.isRetried || attempts.hasNonce }

    /// Whether both sides may be silent for hours.
    var mayBeSilent: Bool { request.isGRPC || isEventStream || isSwitched }
    var isSwitched: Bool { if case .switched = state { true } else { false } }
    var isCollecting: Bool { if case .collecting = state { true } else { false } }
    /// Whether an HTTP request waits for another party than its program; `false` for a delayed 407. Used only after the
    /// program has ended its side.
    var awaitsOthers: Bool {
        switch state {
        case .deciding, .collecting, .awaitingToken, .asked, .refused, .announced, .answered: pause != .room
        case .delayed, .switched, .greeted, .connected, .tunnelled: false
        }
    }

    // MARK: Before the upstream

    /// Delays the 407 for a wrong password.
    mutating func delay() {
        state = .delayed
        hasNewTime = true
    }

    /// Ends the delay of the 407.
    mutating func endDelay() { state = .deciding }

    /// Notes that the request was admitted and goes to an upstream.
    mutating func forward(_ admitted: Admitted) {
        request.offersUpgrade = admitted.upgrade != nil
        request.awaitsWholeBody = request.offersUpgrade && request.framing != .none && request.framing != .length(0)
        if admitted.isLast, !admitted.staysIfIgnored { request.keepsAlive = false }
    }

    /// Begins the reading of a ClientHello that came without a CONNECT.
    mutating func greet() -> Action {
        state = .greeted
        hasNewTime = true
        return .readHello
    }

    /// Handles a complete ClientHello. `request` is the CONNECT that the proxy made for it.
    mutating func helloCame(_ request: Request) {
        self.request = request
        state = .deciding
        hasNewTime = true
    }

    /// Notes that CONNECT gets its 200 without a dial.
    mutating func connect(to authority: Authority, tls: TLSInside) {
        state = .connected(authority, tls: tls)
        hasNewTime = true
    }

    /// Handles the program's first byte inside CONNECT. 0x16 begins TLS (RFC 8446, section 5.1), any other byte HTTP.
    func firstByteCame(_ byte: UInt8) -> Action {
        guard case .connected(let authority, let tls) = state else { return .wait }
        guard byte == 0x16 else { return .serveInside(authority, .http) }
        return switch tls {
        case .refused: .endConnect(.connectRefused)
        case .tunnelled: .openTunnel(authority)
        case .intercepted: .serveInside(authority, .https)
        }
    }

    /// - Parameter isRedirected: whether the connection was redirected: its program has received no 200.
    mutating func tunnel(isRedirected: Bool) {
        request.keepsAlive = false
        state = .tunnelled(isAnswered: isAnswered && !isRedirected)
    }

    /// Begins to read and keep the whole body before the request is sent.
    mutating func collect() {
        state = .collecting
        request.awaitsWholeBody = false
    }

    mutating func collected() {
        state = .deciding
        hasNewTime = true
    }

    /// Begins a wait for a token: for the first attempt, for another attempt, or after a 401.
    mutating func awaitToken() {
        hasNewTime = true
        let refusal: HeldAnswer? = if case .refused(let answer) = state { answer } else { nil }
        state = .awaitingToken(instead: refusal)
    }

    /// Handles the end of the wait for a token.
    /// - Parameters:
    ///   - error: `nil` if a token came.
    ///   - hasSuspect: whether a suspect token exists. It is sent if no other token came, but not on a replay.
    ///   - problem: answer to the program if there is an error.
    mutating func tokenArrived(
        _ error: HeimdallrError?, hasSuspect: Bool, _ problem: Problem
    ) -> Action {
        guard case .awaitingToken(let instead) = state else { return .wait }
        state = .deciding
        let needsNewConnection = attempts.isRetried && !attempts.isReplayed
        guard let error else { return .send(newConnection: needsNewConnection) }
        if instead != nil, error == .needsAuthentication { return .fail(problem) }
        if let instead, instead.isWhole { return .pass(instead) }
        return hasSuspect && !attempts.isReplayed ? .sendSuspect(newConnection: needsNewConnection) : .fail(problem)
    }

    mutating func ask() {
        state = .asked(Asked())
        hasNewTime = true
    }

    // MARK: The program

    /// Notes that the upstream asked for a piece of the body. `isThere`: the program has sent such a piece.
    mutating func bodyAsked(isThere: Bool) {
        if case .asked(var asked) = state {
            asked.awaitsBody = !isThere
            if isThere { asked.hasBody = true }
            state = .asked(asked)
        }
        if isThere || !isAnswered { hasNewTime = true }
    }

    /// Handles more bytes from the program, or the body's end.
    func bodyArrived() -> Action {
        if case .connected = state { return .lookInside }
        if case .greeted = state { return .readHello }
        return isCollecting ? .collectBody : .resumeUpload
    }

    func failed(_ problem: Problem) -> Action { isAnswered ? .cut(because: problem.row.error) : .fail(problem) }

    /// Notes a problem during a call from the upstream's stream. The stream then ends, and `ended` returns the action.
    mutating func stop(_ problem: Problem) { outcome = failed(problem) }

    /// Notes during a call from the upstream's stream that the program is gone.
    mutating func programGone() { outcome = .leave(closes: false) }
}
