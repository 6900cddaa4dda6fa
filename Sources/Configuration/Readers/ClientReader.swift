/// Reads one entry of `clients`.
struct ClientReader {
    let section: Section
    var settings: ClientSettings
    /// Whether the client names a certificate for TLS, readable or not.
    var showsCertificate = false

    static func read(_ name: String, _ section: Section) -> ClientSettings {
        var reader = ClientReader(section: section, settings: ClientSettings(name: name))
        let grant = reader.readGrant()
        reader.readEndpoints()
        reader.readAuthentication()
        reader.readRequest()
        reader.readShown(grant)
        reader.readLifetime()
        reader.readDPoP()
        section.finish()
        section.check(by: "grant_type", grant, among: shortGrants, usual: .clientCredentials) { grant in
            reader.settings.grantType = grant
            reader.checkNeeds()
            reader.checkGrant(grant)
        }
        if grant == nil { reader.checkNeeds() }
        reader.checkPlaintext()
        return reader.settings
    }

    // MARK: Grant

    private static let urn = "urn:ietf:params:oauth:grant-type:"
    private static let grants: [(name: String, grant: ClientSettings.GrantType)] = [
        ("client_credentials", .clientCredentials), ("password", .password), ("refresh_token", .refreshToken),
        ("authorization_code", .authorizationCode), ("implicit", .implicit), ("device_code", .deviceCode),
        ("jwt-bearer", .jwtBearer), ("saml2-bearer", .saml2Bearer), ("token-exchange", .tokenExchange),
        ("github_app", .githubApp),
    ]
    private static let shortNames = grants.map(\.name)
    /// Grants with their spellings.
    private static let shortGrants = grants.map { name, grant in
        (case: grant, words: grant == .githubApp ? [name] : [name, urn + name])
    }

    private static let deprecatedNames = ["password", "implicit"]

    /// The grant; `nil` when it was refused.
    private mutating func readGrant() -> ClientSettings.GrantType? {
        section.read("allow_deprecated", into: &settings.allowDeprecated, Grammar.boolean)
        section.tell("grant_type", usually: "client_credentials")
        let name = section.value("grant_type") { text throws(Misfit) in
            if text == "github_app" { return text }
            for short in Self.shortNames where text == short || text == Self.urn + short { return short }
            guard !Grammar.isAbsoluteURI(text) else { return text }
            if let near = Suggestion.nearest(to: text, among: Self.shortNames) { throw Misfit("write \(near)") }
            throw Misfit(
                "write client_credentials, authorization_code, device_code, password, refresh_token, jwt-bearer, "
                    + "saml2-bearer, token-exchange, github_app or an extension grant's URI",
                fits: .any([
                    .words(
                        Self.shortNames.filter { !Self.deprecatedNames.contains($0) }, deprecated: Self.deprecatedNames),
                    Grammar.absoluteURIs,
                ]))
        }
        guard section.has("grant_type") else { return .clientCredentials }
        guard let name else { return nil }
        let grant = Self.grants.first { $0.name == name }?.grant ?? .extension(name)
        settings.grantType = grant
        return grant
    }

    private func checkGrant(_ grant: ClientSettings.GrantType) {
        checkLogin(grant)
        require(["refresh_token"], when: grant == .refreshToken, "grant_type: refresh_token")
        if grant == .password || grant == .implicit {
            let advice =
                "the \(grant) grant is deprecated (RFC 9700): use another one, or write `allow_deprecated: true`"
            section.need("allow_deprecated", for: "grant_type", saying: advice)
            if section.has("allow_deprecated"), !settings.allowDeprecated { section.error("grant_type", advice) }
        }
        checkShown(grant)
    }

    private func require(_ keys: [String], when needed: Bool, _ grant: String) {
        if needed { require(keys, grant) } else { refuse(keys, belongingTo: "`\(grant)`") }
    }

    func require(_ keys: [String], _ grant: String) {
        for key in keys { section.need(key, saying: "\(section.path): `\(grant)` needs `\(key)`") }
    }

    func refuse(_ keys: [String], belongingTo grants: String) {
        section.refuse(keys, saying: "this belongs to \(grants): leave it out, or change `grant_type`")
    }

    // MARK: Endpoints

    private mutating func readEndpoints() {
        section.read("allow_plaintext", into: &settings.allowPlaintext, Grammar.boolean)
        settings.issuer = section.value("issuer", Self.issuer)
        settings.tokenEndpoint = section.value("token_endpoint", Grammar.endpoint)
        settings.authorizationEndpoint = section.value("authorization_endpoint", Grammar.endpoint)
        settings.revocationEndpoint = section.value("revocation_endpoint", Grammar.endpoint)
        settings.deviceAuthorizationEndpoint = section.value("device_authorization_endpoint", Grammar.endpoint)
        settings.pushedAuthorizationEndpoint = section.value(
            "pushed_authorization_request_endpoint", Grammar.endpoint)
        section.read("par", into: &settings.par, Grammar.word)
        settings.redirectURI = section.value("redirect_uri", Self.redirectURI)
    }

    /// Checks the keys that this grant requires.
    private func checkNeeds() {
        if !saysWhoItIs {
            section.need(
                "client_id",
                saying:
                    "\(section.name(of: "client_id")) is missing: write the identifier that the authorization server "
                    + "issued")
        }
        if settings.grantType != .implicit, settings.grantType != .githubApp {
            let other = section.diagnostics.variables.isEmpty ? "`issuer`" : section.name(of: "issuer")
            section.need(
                "token_endpoint", "issuer",
                saying:
                    "\(section.name(of: "token_endpoint")) is missing: write the URL that issues tokens, or \(other)")
        }
    }

    private func checkPlaintext() {
        guard !settings.allowPlaintext else { return }
        for (key, url) in settings.endpoints where url.prefix(7).lowercased() == "http://" {
            section.refusePlaintext(key, "secrets and tokens would cross the network in plain text")
        }
    }

    // MARK: Client authentication

    private mutating func readAuthentication() {
        section.read("client_id", into: &settings.clientID, Grammar.printable)
        settings.clientSecret = section.secret("client_secret")
        section.read("basic_encoding", into: &settings.basicEncoding, Grammar.word)
        readProof()
        if let tls = section.section("tls") {
            settings.tls = tls.tlsSettings(serverName: false)
            showsCertificate = tls.has("cert_file")
        }
        let key = "token_endpoint_auth_method"
        let method: ClientSettings.AuthMethod? = section.value(key, Grammar.word)
        settings.authMethod = method ?? usualMethod
        section.check(
            by: key, method != nil || !section.has(key) ? settings.authMethod : nil,
            among: ClientSettings.AuthMethod.allCases.map { ($0, [$0.rawValue]) }
        ) { checkAuthentication($0) }
    }

    // MARK: What a token request carries

    /// Parameters that the grant or the client itself sets.
    private static let reservedParams = [
        "grant_type", "client_id", "client_secret", "username", "password", "redirect_uri", "code", "assertion",
        "client_assertion", "client_assertion_type", "state", "response_type", "code_verifier", "code_challenge",
        "code_challenge_method", "nonce", "request", "request_uri", "response_mode", "device_code",
    ]
    /// Parameters with their own keys.
    private static let ownParams = ["scope", "resource", "audience", "authorization_details", "refresh_token"]
    /// Fields that the client or the connection itself sets, in lower case.
    private static let reservedHeaders = Grammar.framingFields.union([
        "authorization", "content-type", "accept-encoding", "content-encoding",
    ])

    private mutating func readRequest() {
        settings.scope = readScope()
        settings.resource = section.list("resource", Grammar.resource) ?? []
        settings.audience = section.value("audience", Grammar.nonempty)
        settings.authorizationDetails = readAuthorizationDetails()
        let ownParams = Self.ownParams + (settings.grantType == .tokenExchange ? Self.exchangeKeys : [])
        settings.params = section.pairs(
            "params", name: { text throws(Misfit) in try Self.parameterName(text, ownParams) }, value: Grammar.any)
        settings.headers = section.pairs("headers", name: Self.headerName, value: Grammar.headerValue)
        settings.username = section.value("username", Grammar.nonempty)
        settings.password = section.secret("password")
        section.deprecate("username", "password")
        settings.refreshToken = section.secret("refresh_token")
        settings.treatAsBearer = section.list("treat_as_bearer", Self.tokenType) ?? []
        settings.labels = section.pairs("labels", name: Grammar.labelName, value: Grammar.any)
        section.nextProxy("proxy", into: &settings.proxy)
    }

    /// A list of scopes, or all of them in one string.
    private func readScope() -> [String] {
        var joined = false
        let groups = section.list("scope") { text throws(Misfit) in
            let tokens = try Grammar.scopes(text)
            joined = joined || tokens.contains { $0.contains(",") }
            return tokens
        }
        if joined {
            section.warn(
                "scope",
                "a comma is part of a scope's name: for several scopes write [read, write] or \"read write\"")
        }
        return (groups ?? []).flatMap { $0 }
    }

    private static func parameterName(_ text: String, _ ownParams: [String]) throws(Misfit) -> String {
        if reservedParams.contains(text) {
            throw Misfit("\"\(text)\" is set by the grant itself and can't be an extra parameter", quotes: false)
        }
        if ownParams.contains(text) {
            throw Misfit("\"\(text)\" has a key of its own: write `\(text):` beside `params`", quotes: false)
        }
        return try Grammar.nonempty(text)
    }

    private static func headerName(_ text: String) throws(Misfit) -> String {
        let name = try Grammar.headerName(text)
        guard !reservedHeaders.contains(name.lowercased()) else {
            throw Misfit("\"\(name)\" is set by the token request itself and can't be an extra header", quotes: false)
        }
        return name
    }

    private static func tokenType(_ text: String) throws(Misfit) -> String {
        guard Grammar.isVisible(text) else { throw Misfit("write a token_type such as access_token") }
        return text
    }

    // MARK: Times

    private mutating func readLifetime() {
        section.read(
            "default_expires_in", into: &settings.defaultExpiresIn,
            Grammar.duration(.seconds(1)...Section.day * 365))
        settings.defaultTokenType = section.value("default_token_type", Self.tokenType)
        section.read("refresh_before", into: &settings.refreshBefore, Grammar.duration(.zero...Section.day))
        section.read("timeout", into: &settings.timeout, Grammar.duration(.milliseconds(1) ... .seconds(3600)))
    }
}
