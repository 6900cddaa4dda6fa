import HTTPServer
import Heimdallr

/// Outcome of a forced refresh, for the button and the command. It does not contain the token.
struct RefreshText {
    let isGood: Bool
    let text: String

    var response: ServerResponse { isGood ? .plain(200, text) : .problem(.noToken, text) }

    private static let timeout = Duration.seconds(30)

    /// Requests a new token, and waits for it up to `timeout`.
    static func make(_ client: AdministrationSources.Client, _ model: AdminModel) async -> RefreshText {
        let heimdallr = client.heimdallr
        guard heimdallr.status().callers == nil else {
            return RefreshText(
                isGood: false,
                text: "Client \(heimdallr.name) exchanges each caller's own token, so there is none to refresh.\n")
        }
        let refreshed = await model.refreshes.run {
            do throws(HeimdallrError) {
                let token = try await heimdallr.refreshedToken(waiting: timeout)
                let status = heimdallr.status()
                return RefreshText(isGood: status.storeFault == nil, text: good(heimdallr.name, token, status))
            } catch {
                return RefreshText(isGood: false, text: bad(error, heimdallr.status(), model.signIn(of: client)))
            }
        }
        return refreshed
            ?? RefreshText(isGood: false, text: "Too many requests wait for new tokens. Try again in a moment.\n")
    }

    static func good(_ name: String, _ token: AccessToken, _ status: HeimdallrStatus) -> String {
        var text = "Client \(name) has a new token: \(token.type)"
        if let left = status.expiresIn { text += ", good for \(StatusPage.words(left))" }
        if !token.scope.isEmpty { text += ", scope \(token.scope.joined(separator: " "))" }
        text += ".\n"
        if let words = Shortfall(status).scopeWords { text += Sentence.whole(words) + "\n" }
        if let fault = status.storeFault { text += "The token is not in the store: \(fault).\n" }
        return text
    }

    static func bad(_ error: HeimdallrError, _ status: HeimdallrStatus, _ signIn: SignInWay) -> String {
        var text = "There is no new token: \(error).\n"
        if error == .needsAuthentication, let reason = status.needsAuthenticationBecause {
            text += "Because: \(Sentence.ended(reason))\n"
        }
        if status.endsBy != nil {
            let end = status.expiresIn.map { "expires in \(StatusPage.words($0))" } ?? "has no known end"
            text += "The previous token stays in use; it \(end).\n"
        }
        text += "What to do: \(Sentence.ended(Sentence.plain(Advice(signIn).sentence(for: error))))\n"
        if let next = status.nextAttemptIn, next >= .seconds(1) {
            text += "The proxy tries again in \(StatusPage.words(next)).\n"
        }
        return text
    }
}
