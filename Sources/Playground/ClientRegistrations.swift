import WireText

/// Clients that registered themselves (RFC 7591): public, with redirect URIs on this machine. Their number is limited.
struct ClientRegistrations: Sendable {
    struct Client: Sendable {
        let name: String
        let redirectURIs: [String]
    }

    private var clients = TokenTable<Client>(lifetime: .seconds(86_400), capacity: 1000)

    func client(_ id: String, now: Instant) -> Client? { clients.grant(for: id, now: now) }

    func knows(_ id: String, now: Instant) -> Bool { client(id, now: now) != nil }

    /// `POST /register`.
    mutating func register(_ body: [UInt8], now: Instant) throws(ErrorAnswer) -> JSON {
        guard let value = try? JSONParser.parse(body), case .array(let elements)? = value["redirect_uris"] else {
            throw ErrorAnswer(code: "invalid_client_metadata", sentence: "The body has no redirect_uris.")
        }
        let uris = elements.compactMap(\.string)
        guard !uris.isEmpty, uris.count == elements.count, uris.count <= 8, uris.allSatisfy(SignInPages.isLoopback)
        else {
            throw ErrorAnswer(code: "invalid_redirect_uri", sentence: "Each redirect URI must lead to this machine.")
        }
        let name = ForeignText.printable(value["client_name"]?.string ?? "a program", most: 64)
        let id = "registered-" + RandomText.make().prefix(16)
        clients.insert(id, Client(name: name, redirectURIs: uris), now: now)
        return [
            "client_id": .string(id), "client_name": .string(name),
            "redirect_uris": JSON(uris), "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"], "token_endpoint_auth_method": "none",
        ]
    }
}
