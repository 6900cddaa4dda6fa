import HTTPMessage

// The values of an exchange, and questions about it.
extension Exchange {
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
        /// After a 401 that blames the token, the request is replayed with a new token.
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
        /// Whether the program sends its body: it did not wait for 100, 100 has come, or a piece of the body was sent.
        var isBodyDue: Bool
        /// Whether the upstream waits for the program's next bytes.
        var awaitsBody = false
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

    /// Earlier attempts. A replay follows a lost connection, an unprocessed request or a refused token.
    struct Attempts {
        var hasNewConnection = false
        var hasNewToken = false
        var wantsNonce = false
        var hasNonce = false
        /// Whether the request was replayed after a refusal. A second refusal passes, so no API gets it three times.
        var wasRefused: Bool { hasNewToken || hasNonce }
        /// Number of times that the head was withheld, usually because the token expired in the wait for a connection.
        var renewals = 0
        private static let maxRenewals = 3
        var needsNewConnection: Bool { hasNewConnection && !hasNewToken }

        /// - Returns: false if the head was withheld too often.
        mutating func renew() -> Bool {
            guard renewals < Self.maxRenewals else { return false }
            renewals += 1
            return true
        }

        /// - Returns: false if the request was replayed on a new connection before.
        mutating func replayOnNewConnection() -> Bool {
            defer { hasNewConnection = true }
            return !hasNewConnection
        }

        /// - Returns: whether to replay at once with the nonce of the refusal; else a new token is needed.
        mutating func replayAfterRefusal() -> Bool {
            defer { wantsNonce = false }
            if wantsNonce { hasNonce = true } else { hasNewToken = true }
            return wantsNonce
        }
    }

    /// Findings of the phase *judge* about an answer.
    struct Findings {
        /// The upstream refused the token, and a newer token may help (rule 7).
        var isTokenRefused = false
        /// Status of a gRPC call in the head of its answer.
        var callStatus: GRPCStatus?
        /// The status of a gRPC call is still to come, and may refuse the token.
        var awaitsStatus = false
        /// The 401 has a nonce for another try (RFC 9449, section 9).
        var wantsNonce = false
        /// The body sent so far is kept, so the request can be replayed.
        var canReplay = false
        var isRequestComplete = false
        /// Why a refused credential is not renewed.
        var obstacle: NotReplayed?
    }

    enum Verdict: Equatable {
        case forward
        case forwardInterim
        /// Read on without forwarding: an interim answer to an HTTP/1.0 client, or a held answer.
        case read
        case switchProtocols
        /// End the upstream's stream. `ended` then decides the next action.
        case stop
    }

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
    var isReplay: Bool { attempts.hasNewToken || attempts.hasNewConnection || attempts.hasNonce }

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

    /// Whether the request may be replayed although the upstream may have processed it.
    var mayReplay: Bool { request.isIdempotent && !attempts.hasNewConnection }

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

    /// Whether the rest of the request's body is not read after an answer with this status: after an error, or if the
    /// program may still wait for 100.
    func leavesBodyUnread(_ status: Int) -> Bool {
        if request.isHTTP2 { return false }
        if status >= 400 { return true }
        return if case .asked(let asked) = state { !asked.isBodyDue } else { request.expectsContinue }
    }

    /// Why the request of an answer that is forwarded was not sent again; `nil` if the answer refuses no credential.
    func obstacle(_ findings: Findings) -> NotReplayed? {
        guard findings.isTokenRefused || findings.wantsNonce else { return findings.obstacle }
        if !findings.wantsNonce, !request.replaysUnauthorized { return .off }
        return attempts.wasRefused ? .replayed : .body
    }

    // MARK: Events without a change

    /// Sends the program `problem` instead of the upstream's answer.
    mutating func refuse(_ problem: Problem) -> Verdict {
        stop(problem)
        return .stop
    }

    /// Handles the program's first byte inside CONNECT. 0x16 begins TLS (RFC 8446, section 5.1), any other byte HTTP.
    func firstByteCame(_ byte: UInt8) -> Action {
        guard case .connected(let authority, let tls) = state else { return .wait }
        guard byte == 0x16 else { return .serveInside(authority, .http) }
        return switch tls {
        case .refused: .endConnect(Problem(.connectRefused))
        case .tunnelled: .openTunnel(authority)
        case .intercepted: .serveInside(authority, .https)
        }
    }

    /// Handles more bytes from the program, or the body's end.
    func bodyArrived() -> Action {
        if case .connected = state { return .lookInside }
        if case .greeted = state { return .readHello }
        return isCollecting ? .collectBody : .resumeUpload
    }

    func failed(_ problem: Problem) -> Action { isAnswered ? .cut(because: problem.row.error) : .fail(problem) }
}
