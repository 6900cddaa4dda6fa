import HTTPServer
import Heimdallr

/// The page before a sign-in of `client: auto`. It shows the API, its server, the scopes and the client. Its forms
/// carry a digest of that offer, so that a changed offer is shown again before the sign-in.
struct OfferRoutes: Sendable {
    let model: AdminModel
    let forms: FormTokens

    private var start: LoginStart { LoginStart(model: model) }

    func add(to router: inout AdminRouter) {
        router.on("POST", "/client/{client}", .data) { request, context in await take(request, context) }
    }

    /// Reads the API's documents, and shows the effects of a sign-in. Changes nothing.
    /// - Parameters:
    ///   - ticket: ticket of the command that waits for the sign-in.
    ///   - changes: parts of the offer that have changed since the page was last shown.
    func show(
        _ client: AdministrationSources.Client, _ request: ServerRequest, ticket: String?,
        changes: [SignInOffer.Part] = []
    ) async throws(LoginError) -> ServerResponse {
        let redirectURI = model.addresses.redirectURI(of: client)
        let offer = try await client.heimdallr.signInOffer(redirectURI: redirectURI)
        return await forms.page(200, for: request, toOtherOrigins: true) { token in
            OfferPage(
                client: client.heimdallr.name, offer: offer, redirectURI: redirectURI,
                ticket: start.ticket(ticket, client), formToken: token, changes: changes
            ).html
        }
    }

    /// Handles a form: begins the sign-in, stores a typed id and secret, or forgets the registration.
    private func take(_ request: ServerRequest, _ context: AdminContext) async -> ServerResponse {
        guard let fields = forms.fields(of: request) else {
            return ServerResponse.page(403, StalePage.html).marked(.staleForm)
        }
        guard let client = model.client(context), client.heimdallr.enrols else { return LoginPage.noClient }
        do throws(LoginError) {
            return try await take(fields, client, request)
        } catch {
            guard case .offerChanged(let parts) = error else { return start.failure(error, client) }
            do throws(LoginError) {
                return try await show(client, request, ticket: fields["ticket"], changes: parts)
            } catch { return start.failure(error, client) }
        }
    }

    private func take(
        _ fields: [String: String], _ client: AdministrationSources.Client, _ request: ServerRequest
    ) async throws(LoginError) -> ServerResponse {
        let (consent, ticket) = (fields["offer"] ?? "", fields["ticket"])
        if let elsewhere = try start.otherOrigin(client, request) { return elsewhere }
        let redirectURI = model.addresses.redirectURI(of: client)
        switch fields["do"] {
        case "anew":
            try await client.heimdallr.forgetRegistration(redirectURI: redirectURI, agreed: consent)
        case "type":
            let secret = fields["client_secret"].flatMap { $0.isEmpty ? nil : Secret($0) }
            try await client.heimdallr.useClient(
                identifier: fields["client_id"] ?? "", secret: secret, redirectURI: redirectURI, agreed: consent)
        default: return try await start.sendOut(client, ticket: ticket, agreed: consent)
        }
        return try await show(client, request, ticket: ticket)
    }
}
