import Heimdallr
import Reports

/// How a person gets a client its token, in words for logs and pages.
struct SignIn: Sendable {
    let client: String
    /// `nil`: nobody can sign in; a refresh token has to be handed in.
    let method: LoginMethod?
    /// Of the page; `nil` when it has to be a terminal.
    let url: String?
    /// What has to be registered at the server; `nil` where none is sent.
    var redirectURI: String?
    /// The client as it is now, for advice; `nil`: nothing is known of it.
    var status: HeimdallrStatus?

    var hint: SignInHint { SignInHint(advice: advice, url: url) }

    var command: String {
        let command = "heimdallr-proxy login \(client)"
        return url == nil && (method == .browser || method == .implicit) ? command + " --paste" : command
    }

    /// What to do, to stand behind a colon.
    var advice: String {
        guard method != nil else { return "put a new refresh token where clients.\(client).refresh_token says" }
        return url.map { "sign in at \($0), or by \(command)" } ?? "sign in by \(command)"
    }
}
