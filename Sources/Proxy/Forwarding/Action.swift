import HTTP2
import HTTPMessage
import Heimdallr

/// The next step of `Forwarder` after an event or a phase. Rare data is `indirect`, which keeps the value small.
enum Action {
    /// Run the next phase.
    case next
    /// Wait for the next event.
    case wait
    indirect case readUsers(BasicCredentials)
    /// - Parameter wasJudged: whether the password was compared.
    indirect case refuseUser(BasicCredentials?, wasJudged: Bool = true)
    /// Refuse a wrong password now: the delay has ended.
    case refuseAfterDelay
    case answerAsLastRecipient
    /// Answer a token request or a question for metadata.
    indirect case answer(OwnAnswer)
    /// Answer CONNECT without dialling.
    indirect case connect(Authority, tls: TLSInside)
    /// Look at the program's first byte inside CONNECT.
    case lookInside
    /// Read the ClientHello of a redirected connection.
    case readHello
    /// Serve requests inside a CONNECT to this authority. With `.https`, the proxy first opens the program's TLS.
    indirect case serveInside(Authority, Scheme)
    /// Close the connection: no request can be served inside this CONNECT.
    indirect case endConnect(Problem)
    indirect case openTunnel(Authority)
    case endTunnel
    case collectBody
    /// - Parameter insteadOf: token that the upstream refused; `nil` if it refused none.
    indirect case awaitToken(insteadOf: AccessToken?)
    /// - Parameter newConnection: whether only a new connection may be used.
    case send(newConnection: Bool)
    /// Send the request with the current token, although the token is suspect.
    case sendSuspect(newConnection: Bool)
    /// Send the request once more. A request with a token gets a valid token (rules 1 and 7).
    case replay(newConnection: Bool)
    case resumeAnswer
    case resumeUpload
    /// Send the held answer to the program.
    indirect case pass(HeldAnswer)
    /// Send an answer of the proxy.
    indirect case fail(Problem)
    /// End a complete answer.
    case finish
    /// Reset the connection, because the program has only a part of the answer.
    /// - Parameters:
    ///   - because: Proxy Error Type (RFC 9209, section 2.3); `nil` if the program is the cause.
    ///   - code: code of the RST_STREAM from the upstream; `nil` for other ends.
    case cut(because: String?, code: HTTP2Code? = nil)
    /// End all work for a program that is gone or gets no further byte.
    /// - Parameter closes: whether the connection is still open and must be closed, without a reset.
    case leave(closes: Bool)
    /// End all work of this request, and the program's connection with all of its requests.
    case hangUp
}
