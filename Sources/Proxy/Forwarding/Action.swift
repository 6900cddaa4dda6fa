import HTTP2
import HTTPMessage
import Heimdallr

/// The shell's next step, after an event or a phase. Rare data is `indirect`, because each request passes several actions.
enum Action {
    /// The next phase.
    case next
    /// Nothing: an event follows.
    case wait
    indirect case readUsers(BasicCredentials)
    indirect case refuseUser(BasicCredentials?)
    /// The delay of a wrong password's refusal is over.
    case refuseGuess
    case answerAsLastRecipient
    /// Answers CONNECT before anything is dialled.
    indirect case connect(Authority, tls: TLSInside)
    case lookInside
    /// Read the ClientHello of a redirected connection.
    case readHello
    /// Requests follow, inside a CONNECT to this authority: with `.https` inside TLS.
    indirect case serveInside(Authority, Scheme)
    /// Nothing can be served inside CONNECT.
    indirect case endConnect(Problem)
    indirect case openTunnel(Authority)
    case endTunnel
    case collectBody
    /// - Parameter insteadOf: a token that was answered with a 401.
    indirect case awaitToken(insteadOf: AccessToken?)
    /// - Parameter fresh: on a new connection.
    case send(fresh: Bool)
    /// With the current token, although it is suspect.
    case sendDoubted(fresh: Bool)
    /// Sends the request once more, or by HTTP/1.1 if the server does not offer HTTP/2, but not with a token that has ended (rule 1) or was refused (rule 7).
    case sendAgain(fresh: Bool)
    case resumeAnswer
    case resumeUpload
    /// The held answer is the client's.
    indirect case pass(HeldAnswer)
    /// The proxy answers itself.
    indirect case fail(Problem)
    /// The answer is whole.
    case finish
    /// The client has part of an answer: close the connection to show that it is incomplete.
    /// - Parameters:
    ///   - because: a Proxy Error Type (RFC 9209, section 2.3); `nil`: the client is the cause.
    ///   - code: code of the RST_STREAM from the upstream.
    case cut(because: String?, code: HTTP2Code? = nil)
    /// The client is gone, or gets no further byte.
    /// - Parameter closes: its connection is still open, and is closed without a reset.
    case leave(closes: Bool)
}
