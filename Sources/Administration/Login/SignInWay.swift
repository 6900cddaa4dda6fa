import Heimdallr
import Reports

/// The way in which a person signs in to a client, for logs and pages.
struct SignInWay: Sendable {
    let client: String
    /// Kind of the sign-in; `nil` if no person signs in to the client.
    let method: LoginMethod?
    /// URL of the page; `nil` if only a terminal can sign in.
    let url: String?
    /// Redirect URI to register at the server; `nil` if none is sent.
    var redirectURI: String?
    var status: HeimdallrStatus?

    var hint: SignInHint {
        SignInHint(advice: advice, url: url, wasLost: status?.needsAuthenticationBecause != nil)
    }

    var command: String {
        let command = "heimdallr-proxy login \(client)"
        return url == nil && (method == .browser || method == .implicit) ? command + " --paste" : command
    }

    var advice: String {
        guard method != nil else {
            return status?.enrolment == nil
                ? "write a new refresh token to the source of clients.\(client).refresh_token"
                : "write the right server as `issuer` under the upstream's auto"
        }
        return url.map { "sign in at \($0), or by \(command)" } ?? "sign in by \(command)"
    }
}

extension HeimdallrStatus {
    /// Sentences about the person who has signed in; empty if the person's name is unknown.
    var personSentences: [String] {
        guard let signedInAs else { return [] }
        let former = formerlySignedInAs.map { ["This is another person than before, who was \($0)."] } ?? []
        return ["The person is \(signedInAs)."] + former
    }
}
