import HTML
import Heimdallr

/// The page that offers a sign-in of `client: auto`. Its forms continue to the server, take a `client_id` and a secret,
/// or register a new client.
struct OfferPage {
    let client: String
    let offer: SignInOffer
    let redirectURI: String
    /// Ticket of the command that waits for the sign-in.
    let ticket: String?
    let formToken: String?
    /// Parts of the offer that have changed since the page was last shown.
    let changes: [SignInOffer.Part]

    var html: HTML {
        PageLayout(title: "Sign in").card(
            """
            <h1>Sign in to “<span translate="no">\(client)</span>”?</h1>
            \(alreadyHTML: changed)
            <dl class="offer">\(alreadyHTML: facts.map { "<dt>\($0.name)</dt><dd>\($0.text)</dd>\n" })</dl>
            \(alreadyHTML: ways)
            """)
    }

    private var facts: [(name: String, text: String)] {
        var facts: [(name: String, text: String)] = [
            ("API", offer.resource ?? "it publishes no metadata"), ("Authorization server", offer.issuer),
            ("Named by", offer.document ?? "the configuration"),
            ("Scopes", offer.scope.isEmpty ? "the server’s own choice" : offer.scope.joined(separator: ", ")),
        ]
        if let demands = offer.demands { facts.append(("The API wants", demands)) }
        facts.append(("Your browser goes to", String(offer.authorizationEndpoint.prefix { $0 != "?" })))
        for (name, host) in offer.foreignEndpoints.sorted(by: { $0.key < $1.key }) {
            facts.append(("At another address", "\(name): \(host)"))
        }
        facts.append(("Client", offer.client.words))
        return facts
    }

    private var ways: HTML {
        switch offer.client {
        case .configured, .document, .registered: go
        case .wanted: "<p>The server does not let programs register themselves.</p>\(alreadyHTML: typing)"
        case .typed: "\(alreadyHTML: go)<details><summary>Use another client</summary>\(alreadyHTML: typing)</details>"
        case .known:
            """
            \(alreadyHTML: go)<details><summary>The server has forgotten this client?</summary>
            \(alreadyHTML: form("anew", "<p><button class=\"button\">Register a new one</button></p>"))</details>
            """
        }
    }

    private var go: HTML {
        """
        <p>The token goes to the API only, and programs never see it.</p>
        \(alreadyHTML: form("go", buttons("Continue", "go")))
        """
    }

    private var typing: HTML {
        let fields: HTML = """
            <p><label for="client-id">Client id</label> <input id="client-id" name="client_id" autocomplete="off" required></p>
            <p><label for="client-secret">Secret, if any</label>
            <input id="client-secret" name="client_secret" type="password" autocomplete="off"></p>
            \(alreadyHTML: buttons("Use this client", "use"))
            """
        return """
            <p>Register a client at the server, with the redirect URI
            <code translate="no">\(redirectURI)</code>, and type in what the server gives you.</p>
            \(alreadyHTML: form("type", fields))
            """
    }

    private func buttons(_ name: String, _ id: String) -> HTML {
        """
        <p class="ways"><button class="button main" id="\(id)">\(name)</button> \
        <a class="button" href="/">To the overview</a></p>
        """
    }

    /// A form that acts on this offer only.
    /// - Parameter action: value of the field `do`.
    private func form(_ action: String, _ content: HTML) -> HTML {
        """
        <form method="post" action="/client/\(client)">\
        <input type="hidden" name="csrf" value="\(formToken ?? "")">\
        <input type="hidden" name="offer" value="\(offer.consent ?? "")">\
        <input type="hidden" name="ticket" value="\(ticket ?? "")">\
        <input type="hidden" name="do" value="\(action)">
        \(alreadyHTML: content)</form>
        """
    }

    private var changed: HTML {
        guard !changes.isEmpty else { return "" }
        let parts = changes.map(\.words).joined(separator: ", ")
        return """
            <p class="notice">Since this page was shown, the API’s or the server’s documents have changed: \(parts). \
            Nothing was sent. Look at the new offer before you go on.</p>
            """
    }
}

extension SignInOffer.Part {
    fileprivate var words: String {
        switch self {
        case .resource: "the API’s identifier"
        case .issuer: "the authorization server"
        case .endpoints: "the server’s endpoints"
        case .scope: "the scopes"
        case .client: "the client"
        case .authentication: "the kind or age of the sign-in that the API wants"
        }
    }
}

extension SignInOffer {
    /// The API's demands on the person's authentication, in words; `nil` if it has none.
    fileprivate var demands: String? {
        let kind = acrValues.map { "a sign-in of the kind “\($0)”" }
        let age = maxAge.map { $0 == 0 ? "a new sign-in" : "a sign-in in the last \($0) s" }
        let all = [kind, age].compactMap { $0 }
        return all.isEmpty ? nil : all.joined(separator: ", ")
    }
}

extension SignInOffer.Client {
    package var words: String {
        switch self {
        case .configured(let identifier): "\(identifier), configured"
        case .document(let address): address
        case .known(let identifier), .typed(let identifier): "\(identifier), known to the server"
        case .registered: "will be registered at the sign-in"
        case .wanted: "has to be registered by you"
        }
    }
}
