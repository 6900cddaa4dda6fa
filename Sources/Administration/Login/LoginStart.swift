import HTTPMessage
import HTTPServer
import Heimdallr

/// Start of a sign-in: sends the browser to the authorization server.
struct LoginStart: Sendable {
    let model: AdminModel

    /// Redirects to the same page at the origin of the redirect URI, so that the browser returns with its cookies.
    /// - Returns: `nil` if the browser is already at that origin; an error page for a POST, or if a redirect had
    ///   no effect.
    func otherOrigin(
        _ client: AdministrationSources.Client, _ request: ServerRequest
    ) throws(LoginError) -> ServerResponse? {
        guard let origin = model.addresses.ownOrigin(of: model.addresses.redirectURI(of: client)) else {
            throw .badRedirectURI
        }
        let host = request.hosts.first ?? ""
        guard !model.addresses.isAt(origin, request) else { return nil }
        guard request.method == "GET", request.parameter("pass") == nil else {
            return LoginPage.failure(
                400, "This address does not match redirect_uri",
                "The authorization server redirects to \(origin.url.start), but your browser "
                    + "opened \(host), even after a redirect.", "Use the server's address, or change redirect_uri.")
        }
        guard let pass = model.logins.newPass() else { throw .noRandomness }
        var url = "\(origin.base)/login/\(client.heimdallr.name)?pass=\(pass)"
        if let ticket = ticket(request.parameter("ticket"), client) { url += "&ticket=\(ticket)" }
        return .redirect(to: url)
    }

    /// Redirects to the authorization server.
    /// - Parameters:
    ///   - ticket: ticket of a command, as the browser sent it; an unknown ticket has no effect.
    ///   - agreed: consent to an offer; `nil` if the client has no offer.
    func sendOut(
        _ client: AdministrationSources.Client, ticket received: String?, agreed: String? = nil
    ) async throws(LoginError) -> ServerResponse {
        let redirectURI = model.addresses.redirectURI(of: client)
        guard let origin = model.addresses.ownOrigin(of: redirectURI) else { throw .badRedirectURI }
        let (url, cookie) = try await model.logins.beginAtBrowser(
            client.heimdallr, redirectURI: redirectURI, ticket: ticket(received, client), agreed: agreed)
        var response = ServerResponse.redirect(to: url)
        response.setCookie(
            cookie.name, cookie.value.revealed, path: origin.path, sameSite: "Lax",
            maxAge: Int(LoginAttempts.lifetime.components.seconds), isSecure: origin.url.scheme == .https)
        return response
    }

    /// Returns the ticket, if it belongs to the client.
    func ticket(_ received: String?, _ client: AdministrationSources.Client) -> String? {
        received.flatMap { model.logins.ticket($0)?.client == client.heimdallr.name ? $0 : nil }
    }

    /// The page for a sign-in that could not begin.
    func failure(_ error: LoginError, _ client: AdministrationSources.Client) -> ServerResponse {
        LoginPage.failure(
            error == .badClient ? 400 : 502, "The sign-in could not begin",
            LoginPage.sentence(error, model.signIn(of: client)),
            again: "/login/\(client.heimdallr.name)")
    }
}
