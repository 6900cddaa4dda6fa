import HTTPMessage
import Heimdallr

/// What the shell does after an event or a phase.
enum Action {
    /// The next phase.
    case next
    /// Nothing: the next event decides.
    case wait
    case readUsers(BasicCredentials)
    case refuseUser(BasicCredentials?)
    /// The delay of a wrong password's refusal is over.
    case refuseGuess
    case answerAsLastRecipient
    case openTunnel(Authority)
    case endTunnel
    case collectBody
    /// - Parameter insteadOf: a token that was answered with a 401.
    case awaitToken(insteadOf: AccessToken?)
    /// - Parameter fresh: on a new connection.
    case send(fresh: Bool)
    /// With the current token, although it is suspect.
    case sendDoubted(fresh: Bool)
    /// Once more; a token that ended or was refused meanwhile is not sent again (rule 1).
    case sendAgain(fresh: Bool)
    /// Nothing was sent yet, because the server does not offer HTTP/2.
    case sendByHTTP1
    case resumeAnswer
    case resumeUpload
    /// The held answer is the client's.
    indirect case pass(HeldAnswer)
    /// The proxy answers itself.
    indirect case fail(Problem)
    /// The answer is whole.
    case finish
    /// The client has part of an answer: close the connection to show that it is incomplete.
    /// - Parameter because: a Proxy Error Type (RFC 9209, section 2.3); `nil`: the client is the cause.
    case cut(because: String?)
    /// No byte reaches the client any more.
    /// - Parameter closes: the connection is still to be closed, in order.
    case leave(closes: Bool)
}
