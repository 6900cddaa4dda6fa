import HTTPMessage
import Heimdallr
import WireText

// Assertions and tokens that a client sends in token requests.
extension ClientReader {
    static let exchangeKeys = [
        "subject_token", "subject_token_type", "actor_token", "actor_token_type", "requested_token_type",
    ]
    private static let typeURN = "urn:ietf:params:oauth:token-type:"
    private static let typeNames = ["access_token", "refresh_token", "id_token", "saml1", "saml2", "jwt"]

    /// Whether the grant knows no `client_id`, or the assertion or token alone may identify the client. Then `client_id` is
    /// optional (RFC 7521, section 4.1; RFC 8693, section 2.1).
    var mayOmitClientID: Bool {
        !settings.grantType.hasClientID
            || settings.grantType.carriesAssertion
                && !["client_secret", "client_key", "token_endpoint_auth_method"].contains(where: section.has)
    }

    mutating func readAssertions(_ grant: Grant?) {
        settings.assertion = readAssertion()
        settings.githubApp = readGitHubApp(grant)
        settings.aws = readAWS(grant)
        let subject = readSubject()
        let types = ["subject_token_type", "actor_token_type"].map { key in
            section.tell(key, usually: "access_token")
            return section.value(key, Self.tokenTypeURI) ?? Self.typeURN + "access_token"
        }
        let actor = section.secret("actor_token")
        let requested = section.value("requested_token_type", Self.tokenTypeURI)
        if grant == .tokenExchange, let subject {
            settings.exchange = ExchangeSettings(
                subject: subject, subjectType: types[0], actor: actor, actorType: types[1],
                requestedType: requested)
        }
    }

    // MARK: RFC 7523

    private func readAssertion() -> AssertionSettings? {
        section.tell("assertion", .any([Section.secretShape, .section { _ = readSigned($0) }]))
        guard let node = section.node("assertion"), case .mapping(let entries) = node.content,
            !entries.contains(where: { Section.secretKinds.contains($0.key) }),
            let inner = section.section("assertion")
        else { return section.secret("assertion").map { .secret($0) } }
        return readSigned(inner)
    }

    private func readSigned(_ inner: Section) -> AssertionSettings? {
        defer { inner.finish() }
        let key = inner.secret("key")
        inner.need(
            "key", saying: "\(inner.path): write {file: PATH}, or `key` for an assertion that the proxy signs")
        // A placeholder stands for a missing `key`, so that the other settings are still checked.
        var settings = SignedAssertionSettings(key: key ?? .environment(name: ""))
        settings.keyID = inner.value("key_id", Grammar.nonempty)
        settings.algorithm = inner.value("algorithm", Grammar.word)
        settings.issuer = inner.value("issuer", Grammar.nonempty)
        settings.subject = inner.value("subject", Grammar.nonempty)
        inner.tell("audience", usually: "token_endpoint")
        inner.read("audience", into: &settings.audience) { text throws(BadValue) in
            JWTAudience(try Grammar.nonempty(text))
        }
        if settings.audience == .issuer, !section.has("issuer") {
            inner.error("audience", "this needs `issuer` beside `assertion`: write it, or the audience itself")
        }
        settings.scope = (inner.list("scope", Grammar.scopes) ?? []).flatMap { $0 }
        settings.claims = readClaims(inner)
        inner.read("expires_in", into: &settings.expiresIn, Grammar.duration(.seconds(1) ... .seconds(3600)))
        if let key { inner.note(.account(key, algorithm: settings.algorithm?.rawValue), at: "key") }
        return key == nil ? nil : .signed(settings)
    }

    private static let ownClaims = [
        "iss": "issuer", "sub": "subject", "aud": "audience", "scope": "scope", "exp": "expires_in",
    ]

    private func readClaims(_ inner: Section) -> [String: JSONValue] {
        inner.tell("claims", .open(Outline()))
        guard let node = inner.node("claims") else { return [:] }
        guard case .mapping(let entries) = node.content else {
            inner.error("claims", "write a mapping of `name: value` lines, not \(node.kind)")
            return [:]
        }
        func report(_ entry: Node.Entry, _ fault: String) {
            inner.diagnostics.error(entry.keyPosition, "\(inner.shownName(of: "claims")): \"\(entry.key)\" \(fault)")
        }
        for entry in entries {
            if let key = Self.ownClaims[entry.key] {
                report(entry, "has a separate key: write `\(key):` beside `claims`")
            } else if ["iat", "jti"].contains(entry.key) {
                report(entry, "is generated for each assertion, and can't be set")
            }
        }
        guard case .object(let members)? = inner.json(node, "claims") else { return [:] }
        checkLength(JSON(.object(members)), inner, "claims")
        return members
    }

    private func checkLength(_ json: JSON, _ section: Section, _ key: String) {
        guard json.text(.compact, escaping: .required).utf8.count > 16 * 1024 else { return }
        section.error(key, "these are longer than 16 KiB as JSON: leave out what the server does not need")
    }

    func refuseSigning() {
        if case .signed = settings.assertion {
            section.error(
                "assertion", "the proxy can only sign JWTs: write {file: PATH}, or `grant_type: jwt-bearer`")
        }
    }

    func checkExchange() {
        section.refuse(
            "actor_token_type", without: "actor_token", saying: "this needs `actor_token` too (RFC 8693, section 2.1)")
    }

    // MARK: GitHub

    private mutating func readGitHubApp(_ grant: Grant?) -> GitHubAppSettings? {
        let key = section.secret("key")
        let installation = section.value("installation") { text throws(BadValue) in
            try Grammar.checked(
                text, text.utf8.count <= 20 && Grammar.digits(text) != nil,
                BadValue(
                    "write the installation's number, the last part of the URL of its settings",
                    matching: "^[0-9]{1,20}$"))
        }
        let api = section.value("api", Grammar.endpoint)
        section.tell("api", usually: GitHubAppSettings.usualAPI)
        let repositories = section.list("repositories", Grammar.nonempty) ?? []
        let permissions = section.pairs("permissions", name: Grammar.nonempty, value: Grammar.nonempty)
        guard grant == .githubApp, let key, let installation else { return nil }
        section.note(.signing(key, algorithm: "RS256", certificate: nil), at: "key")
        return GitHubAppSettings(
            key: key, installation: installation, api: api ?? GitHubAppSettings.usualAPI, repositories: repositories,
            permissions: permissions)
    }

    func checkGitHubApp() {
        section.refuse(
            ["token_endpoint", "issuer"], saying: "the endpoint follows from `api` and `installation`: leave it out")
        section.refuse(
            [
                "client_secret", "token_endpoint_auth_method", "scope", "resource", "audience", "authorization_details",
                "params", "revocation_endpoint", "dpop", "token_member",
            ], saying: "a GitHub App authenticates only with its key: leave it out")
        for repository in settings.githubApp?.repositories ?? [] where repository.contains("/") {
            section.error("repositories", "write the names of repositories without their owner")
        }
        guard let api = settings.githubApp?.api else { return }
        if api.contains("?") { section.error("api", "write the URL without a query (from ? on)") }
        if !settings.allowPlaintext, WebURL.scheme(of: api) == .http {
            section.refusePlaintext("api", "secrets and tokens would cross the network in plain text")
        }
    }

    private func readSubject() -> ExchangeSettings.Subject? {
        if let node = section.node("subject_token"), case .scalar(let scalar) = node.content, scalar.text == "caller" {
            return .caller
        }
        return section.secret("subject_token").map { .secret($0) }
    }

    /// A token type: a short name, or any URI (RFC 8693, section 3).
    private static func tokenTypeURI(_ text: String) throws(BadValue) -> String {
        if typeNames.contains(text) { return typeURN + text }
        guard !Grammar.isAbsoluteURI(text) else { return text }
        if let near = Suggestion.nearest(to: text, among: typeNames) { throw BadValue("write \(near)") }
        throw BadValue(
            "write one of \(typeNames.joined(separator: ", ")), or a URI",
            fits: .any([.words(typeNames), Grammar.absoluteURIs]))
    }

    // MARK: RFC 9396

    private static var detail: Outline {
        let outline = Outline()
        outline.add(
            "type", .value(.text(ValueKind.Text(acceptsEmpty: false, acceptsNumbers: false, acceptsBooleans: false))))
        outline.need(["type"])
        return outline
    }

    func readAuthorizationDetails() -> [JSONValue] {
        let key = "authorization_details"
        section.tell(key, .oneOrMore(.open(Self.detail)))
        guard let node = section.node(key) else { return [] }
        var details: [JSONValue] = []
        for element in node.elements {
            guard case .mapping = element.content else {
                section.error(
                    element, key, "write a list of mappings, each with a `type` (RFC 9396), not \(element.kind)")
                continue
            }
            guard let detail = section.json(element, key) else { continue }
            if detail["type"]?.string?.isEmpty ?? true {
                section.error(element, key, "each entry needs a `type`, a text (RFC 9396, section 2)")
            }
            details.append(detail)
        }
        checkLength(JSON(.array(details)), section, key)
        return details
    }
}
