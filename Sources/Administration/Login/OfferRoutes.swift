import HTML
import HTTPServer
import Heimdallr

/// The page before a sign-in of `client: auto`. It shows the API, its server, the scopes and the client.
struct OfferRoutes: Sendable {
    let model: AdminModel
    let forms: FormTokens

    func add(to router: inout AdminRouter) {
        router.on("POST", "/client/{client}", .data) { request, context in await take(request, context) }
    }

    /// Reads the API's documents, and shows what a sign-in would do. Changes nothing.
    func show(_ client: AdministrationSources.Client, _ request: ServerRequest) async throws(LoginError)
        -> ServerResponse
    {
        let redirectURI = model.addresses.redirectURI(of: client)
        let offer = try await client.heimdallr.signInOffer(redirectURI: redirectURI)
        let (cookie, isNew) = forms.cookie(of: request)
        let page = OfferPage(
            client: client.heimdallr.name, offer: offer, redirectURI: redirectURI,
            ticket: request.parameter("ticket").flatMap { model.logins.ticket($0) == nil ? nil : $0 },
            formToken: cookie.flatMap { forms.token(for: $0) })
        var response = ServerResponse.page(200, page.html, sendsForms: true)
        if isNew, let cookie { response.setCookie(FormTokens.cookie, cookie, sameSite: "Lax") }
        return response
    }

    /// Takes the id and the secret that a person has typed in, or the wish to register anew.
    private func take(_ request: ServerRequest, _ context: AdminContext) async -> ServerResponse {
        let fields = request.form ?? [:]
        guard forms.accepts(fields["csrf"], for: request.cookies[FormTokens.cookie]) else {
            return ServerResponse.page(403, StalePage.html).marked(.staleForm)
        }
        guard let client = model.client(context), client.heimdallr.enrols else {
            return LoginPage.failure(404, "No such client", "The configuration has no client of that name.")
        }
        if fields["anew"] != nil { client.heimdallr.forgetRegistration() }
        let secret = fields["client_secret"].flatMap { $0.isEmpty ? nil : Secret($0) }
        do throws(LoginError) {
            if fields["anew"] == nil {
                try await client.heimdallr.useClient(
                    identifier: fields["client_id"] ?? "", secret: secret,
                    redirectURI: model.addresses.redirectURI(of: client))
            }
            return try await show(client, request)
        } catch {
            return LoginPage.failure(
                400, "The client can’t be used", LoginPage.sentence(error, model.signIn(of: client)),
                again: "/login/\(client.heimdallr.name)")
        }
    }
}

/// Shows an offer, and a link to the server or a form for `client_id` and secret.
struct OfferPage {
    let client: String
    let offer: SignInOffer
    let redirectURI: String
    /// Ticket of the command that waits for the sign-in.
    let ticket: String?
    let formToken: String?

    var html: HTML {
        PageLayout(title: "Sign in").card(
            """
            <h1>Sign in to “\(client)”?</h1>
            <dl class="offer">\(alreadyHTML: facts.map { "<dt>\($0.name)</dt><dd>\($0.text)</dd>\n" })</dl>
            \(alreadyHTML: ways)
            """)
    }

    private var facts: [(name: String, text: String)] {
        var facts: [(name: String, text: String)] = []
        facts.append(("API", offer.resource ?? "it publishes no metadata"))
        facts.append(("Authorization server", offer.issuer))
        facts.append(("Named by", offer.document ?? "the configuration"))
        facts.append(
            ("Scopes", offer.scope.isEmpty ? "the server’s own choice" : offer.scope.joined(separator: ", ")))
        facts.append(("Your browser goes to", String(offer.authorizationEndpoint.prefix { $0 != "?" })))
        for (name, host) in offer.foreignEndpoints.sorted(by: { $0.key < $1.key }) {
            facts.append(("At another host", "\(name): \(host)"))
        }
        facts.append(("Client", clientWords))
        return facts
    }

    private var clientWords: String {
        switch offer.client {
        case .configured(let identifier): "\(identifier), configured"
        case .document(let address): address
        case .known(let identifier), .typed(let identifier): "\(identifier), known to the server"
        case .registered: "will be registered now"
        case .wanted: "has to be registered by you"
        }
    }

    private var ways: HTML {
        switch offer.client {
        case .configured, .document, .registered: go
        case .wanted: "<p>The server registers no programs by itself.</p>\(alreadyHTML: form)"
        case .typed: "\(alreadyHTML: go)<details><summary>Use another client</summary>\(alreadyHTML: form)</details>"
        case .known:
            """
            \(alreadyHTML: go)<details><summary>The server does not know this client?</summary>
            <form method="post" action="/client/\(client)">\
            <input type="hidden" name="csrf" value="\(formToken ?? "")">
            <p><button class="button" name="anew" value="true">Register a new one</button></p></form></details>
            """
        }
    }

    private var go: HTML {
        let rest = ticket.map { "&ticket=\($0)" } ?? ""
        return """
            <p>The token goes to the API only, and programs never see it.</p>
            <p class="ways"><a class="button main" id="go" href="/login/\(client)?go=true\(rest)">Continue</a> \
            <a class="button" href="/">To the overview</a></p>
            """
    }

    private var form: HTML {
        """
        <p>Register one there, with the redirect URI
        <code>\(redirectURI)</code>, and type in what the server gives you.</p>
        <form method="post" action="/client/\(client)">\
        <input type="hidden" name="csrf" value="\(formToken ?? "")">
        <p><label for="client-id">Client id</label> <input id="client-id" name="client_id" autocomplete="off" required></p>
        <p><label for="client-secret">Secret, if any</label>
        <input id="client-secret" name="client_secret" type="password" autocomplete="off"></p>
        <p class="ways"><button class="button main">Use this client</button> \
        <a class="button" href="/">To the overview</a></p></form>
        """
    }
}
