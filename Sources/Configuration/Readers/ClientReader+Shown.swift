import WireText

// What a client shows for a token: an assertion, or another token.
extension ClientReader {
    static let exchangeKeys = [
        "subject_token", "subject_token_type", "actor_token", "actor_token_type", "requested_token_type",
    ]
    private static let typeURN = "urn:ietf:params:oauth:token-type:"
    private static let typeNames = ["access_token", "refresh_token", "id_token", "saml1", "saml2", "jwt"]

    /// What it shows may say who asks: then there need not be a `client_id` (RFC 7521, section 4.1; RFC 8693, section
    /// 2.1).
    var saysWhoItIs: Bool {
        switch settings.grantType {
        case .jwtBearer, .saml2Bearer, .tokenExchange:
            !section.has("client_secret") && !section.has("token_endpoint_auth_method")
        default: false
        }
    }

    mutating func readShown(_ grant: ClientSettings.GrantType?) {
        settings.assertion = section.secret("assertion")
        let subject = section.secret("subject_token")
        let types = ["subject_token_type", "actor_token_type"].map { key in
            section.value(key, Self.tokenTypeURI) ?? Self.typeURN + "access_token"
        }
        let actor = section.secret("actor_token")
        let requested = section.value("requested_token_type", Self.tokenTypeURI)
        if grant == .tokenExchange, let subject {
            settings.exchange = ExchangeSettings(
                subject: .secret(subject), subjectType: types[0], actor: actor, actorType: types[1],
                requestedType: requested)
        }
    }

    func checkShown(_ grant: ClientSettings.GrantType) {
        switch grant {
        case .jwtBearer: require(["assertion"], "grant_type: jwt-bearer")
        case .saml2Bearer: require(["assertion"], "grant_type: saml2-bearer")
        default: refuse(["assertion"], belongingTo: "`grant_type: jwt-bearer` and `saml2-bearer`")
        }
        guard grant == .tokenExchange else {
            refuse(Self.exchangeKeys, belongingTo: "`grant_type: token-exchange`")
            return
        }
        require(["subject_token"], "grant_type: token-exchange")
        if section.has("actor_token_type"), !section.has("actor_token") {
            section.error("actor_token_type", "this needs `actor_token` too (RFC 8693, section 2.1)")
        }
    }

    private func require(_ keys: [String], _ grant: String) {
        for key in keys where !section.has(key) {
            section.diagnostics.error(section.position, "\(section.path): `\(grant)` needs `\(key)`")
        }
    }

    /// RFC 8693, section 3: a short name, or any URI.
    private static func tokenTypeURI(_ text: String) throws(Misfit) -> String {
        if typeNames.contains(text) { return typeURN + text }
        guard !Grammar.isAbsoluteURI(text) else { return text }
        if let near = Suggestion.nearest(to: text, among: typeNames) { throw Misfit("write \(near)") }
        throw Misfit("write one of \(typeNames.joined(separator: ", ")), or a URI")
    }

    // MARK: RFC 9396

    private static let maxDetails = 16 * 1024

    func readAuthorizationDetails() -> [JSONValue] {
        let key = "authorization_details"
        guard let node = section.node(key) else { return [] }
        var nodes = [node]
        if case .sequence(let elements) = node.content { nodes = elements }
        var details: [JSONValue] = []
        for element in nodes {
            guard case .mapping = element.content else {
                section.diagnostics.error(
                    element.position,
                    section.label(key, element)
                        + "write a list of mappings, each with a `type` (RFC 9396), not \(element.kind)")
                continue
            }
            guard let detail = section.json(element, key) else { continue }
            if detail["type"]?.string?.isEmpty ?? true {
                section.diagnostics.error(
                    element.position,
                    section.label(key, element)
                        + "each entry needs a `type`, a text (RFC 9396, section 2)")
            }
            details.append(detail)
        }
        if JSON(.array(details)).text(.compact, escaping: .required).utf8.count > Self.maxDetails {
            section.error(key, "these are longer than 16 KiB as JSON: leave out what the server does not need")
        }
        return details
    }
}
