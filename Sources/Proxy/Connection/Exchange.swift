import CurlTransport
import HTTPMessage
import Heimdallr

/// The decisions of one request's life, without I/O: what happened goes in, what to do comes out.
struct Exchange {
    // What the request is.
    var isHead = false
    var isHTTP10 = false
    var isIdempotent = false
    var hasBody = false
    var expectsContinue = false
    /// The client keeps the connection open after the answer.
    var clientKeepsAlive = false
    var replaysUnauthorized = false
    /// It asks for other protocols, and these may be passed on.
    var upgrade: UpgradeList?

    // How far it is.
    /// 100 has come.
    var wasToldToContinue = false
    /// The request's body has been taken off the connection to its end.
    var isRequestComplete = false
    /// The head of the final answer was written to the client.
    private(set) var isAnswered = false
    /// How the client is told where the answer's body ends.
    private(set) var answerFraming = BodyFraming.none
    private(set) var isResent = false
    private(set) var isReplayed = false
    /// How often its token expired before it could be sent.
    private var renewals = 0
    private static let maxRenewals = 3
    /// The answer is a 401 that the client sees only if no new token is to be had.
    private(set) var isDiscardingAnswer = false
    /// The upstream has agreed to an upgrade: bytes pass both ways, and mean nothing to us.
    private(set) var isSwitched = false
    /// The answer's body can't be told from a cut one but by closing.
    private(set) var endsByClose = false

    init() {}

    /// What to do when the exchange with the upstream is over.
    enum Ending: Equatable {
        /// The answer is whole.
        case complete
        /// The connection died before it answered: once more, on a fresh one.
        case resend
        /// A new token, and once more.
        case replay
        /// Nothing was sent: a current token, and on with it.
        case renew
        /// Nothing was sent: once more, over HTTP/1.1.
        case sendByHTTP1
        case problem(Problem)
        /// The client has a part of the answer: only a closed connection says that it is not all.
        case cut
    }

    /// - Parameter canSendAgain: the connection had served others before, and the request's body is at hand.
    mutating func ended(_ error: TransportError?, isHeadComplete: Bool, canSendAgain: Bool) -> Ending {
        if isDiscardingAnswer {
            isDiscardingAnswer = false
            isReplayed = true
            return .replay
        }
        if isAnswered { return error == nil ? .complete : .cut }
        guard let error else {
            return .problem(isHeadComplete ? .internalError : Problem(TransportError(.responseTruncated, message: "")))
        }
        if error.kind == .http2Missing { return .sendByHTTP1 }
        if error.kind == .withheld, renewals < Self.maxRenewals {
            renewals += 1
            return .renew
        }
        if error.kind == .connectionLost, isIdempotent, canSendAgain, !isResent {
            isResent = true
            return .resend
        }
        return .problem(Problem(error))
    }

    /// What to do with the head of an answer.
    enum Verdict: Equatable {
        case forward
        /// Passed to the client before the answer proper.
        case forwardInterim
        case dropInterim
        /// A 401 that a new token may cure: the client does not see it yet.
        case discard
        /// 101: from here on it is another protocol.
        case switchProtocols
        case refuse(Problem)
    }

    /// - Parameters:
    ///   - isTokenRefused: a 401 that a newer token may cure (rule 7).
    ///   - canSendAgain: the body so far is still at hand.
    mutating func judge(status: Int, isInterim: Bool, isTokenRefused: Bool, canSendAgain: Bool) -> Verdict {
        if isInterim { return isHTTP10 ? .dropInterim : .forwardInterim }
        if status == 101 { return upgrade == nil ? .refuse(.unaskedUpgrade) : .switchProtocols }
        if isTokenRefused, replaysUnauthorized, !isReplayed, canSendAgain {
            isDiscardingAnswer = true
            return .discard
        }
        // It would have to be sent again without the expectation.
        if status == 417, expectsContinue { return .refuse(.expectationFailed) }
        return .forward
    }

    /// The answer's head goes out. Decides how its body is framed towards the client.
    mutating func answer(status: Int, framing: BodyFraming) {
        isAnswered = true
        // The rest of the body will not be asked for: sending stops at a refusal, and does not begin while 100 is
        // waited for.
        if !isRequestComplete, status >= 400 || expectsContinue { clientKeepsAlive = false }
        switch framing {
        case .none, .length: answerFraming = framing
        case .chunked, .untilClose:
            answerFraming = isHTTP10 ? .untilClose : .chunked
            endsByClose = isHTTP10
        }
    }

    /// The client may wait with its body until the upstream wants it.
    var awaitsContinue: Bool { expectsContinue && !wasToldToContinue }

    /// The upstream has agreed, and the client is told so.
    mutating func switchProtocols() {
        answer(status: 101, framing: .untilClose)
        answerFraming = .untilClose
        endsByClose = true
        isSwitched = true
        isRequestComplete = false
    }

    /// Whether the connection can carry another request once this answer is out.
    var keepsConnection: Bool { clientKeepsAlive && isRequestComplete && !endsByClose }
}
