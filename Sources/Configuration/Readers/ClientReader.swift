import HTTPMessage
import Heimdallr

/// Reads an entry of `clients`.
struct ClientReader {
    let section: Section
    var settings: ClientSettings
    /// Whether the client has a TLS certificate, even if its file can't be read.
    var hasTLSCertificate = false
    /// Whether `token_endpoint_auth_signing_alg` is HS256, which only `client_secret_jwt` uses.
    var namesHS256 = false
    /// Whether the keys belong to `client: auto`.
    var isAuto = false

    static func read(_ name: String, _ section: Section) -> ClientSettings {
        var reader = ClientReader(section: section, settings: ClientSettings(name: name))
        let grant = reader.readGrant()
        reader.readEndpoints()
        reader.readAuthentication()
        reader.readScopes()
        reader.readRequest()
        reader.readAssertions(grant)
        Self.readServer(section, into: &reader.settings)
        Self.warnOfTemplates(section, reader.settings)
        section.finish()
        let words = Grant.all.map { (case: $0, words: [$0.name, Grant.urn + $0.name]) }
        section.check(by: "grant_type", grant, among: words, usual: .clientCredentials) { grant in
            reader.settings.grantType = grant
            reader.checkNeeds()
            reader.checkGrant(grant)
        }
        if grant == nil { reader.checkNeeds() }
        reader.checkPlaintext()
        let settings = reader.settings
        reader.settings.tokenEndpoint = settings.tokenEndpoint ?? settings.grantType.endpoint(settings)
        return reader.settings
    }

    // MARK: Grant

    typealias Grant = ClientSettings.GrantType

    /// Reads `grant_type`. Returns its grant, or the default; `nil` after an invalid value.
    private mutating func readGrant() -> Grant? {
        section.read("allow_deprecated", into: &settings.allowDeprecated, Grammar.boolean)
        section.tell("grant_type", usually: "client_credentials")
        let found = section.value("grant_type") { text throws(BadValue) -> Grant in
            if let grant = Grant.all.first(where: { text == $0.name || text == Grant.urn + $0.name }) { return grant }
            if Grammar.isAbsoluteURI(text) { return .extension(text) }
            let names = Grant.all.map(\.name)
            if let near = Suggestion.nearest(to: text, among: names, within: 2) { throw BadValue("write \(near)") }
            if Self.isGrantName(text) { return .extension(text) }
            throw BadValue(
                "write client_credentials, authorization_code, device_code, password, refresh_token, jwt-bearer, "
                    + "saml2-bearer, token-exchange, github_app, aws, or another grant's name or URI",
                fits: .any([
                    .words(
                        Grant.all.filter { !$0.isDeprecated }.map(\.name),
                        deprecated: Grant.all.filter(\.isDeprecated).map(\.name)),
                    Grammar.absoluteURIs, Self.grantNames,
                ]))
        }
        guard section.has("grant_type") else { return .clientCredentials }
        settings.grantType = found ?? settings.grantType
        return found
    }

    /// Keys that only some grants have, with these grants.
    private static let grantKeys: [(keys: [String], grants: [Grant])] = {
        var found: [(keys: [String], grants: [Grant])] = []
        for key in Grant.all.flatMap(\.keys) where !found.contains(where: { $0.keys.contains(key) }) {
            let grants = Grant.all.filter { $0.keys.contains(key) }
            if let index = found.firstIndex(where: { $0.grants == grants }) {
                found[index].keys.append(key)
            } else {
                found.append(([key], grants))
            }
        }
        return found
    }()

    private func checkGrant(_ grant: Grant) {
        for (keys, grants) in Self.grantKeys where !grants.contains(grant) {
            let names = grants.map(\.name).joined(separator: "` and `")
            section.refuse(
                keys, saying: "this belongs to `grant_type: \(names)`: leave it out, or change `grant_type`")
        }
        checkExpectation()
        for key in grant.required {
            section.need(key, saying: "\(section.path): `grant_type: \(grant.name)` needs `\(key)`")
        }
        grant.check(self)
        if grant.isDeprecated { checkDeprecated(grant) }
    }

    func checkExtension(_ name: String) {
        guard settings.parameters.isEmpty, !Grammar.isAbsoluteURI(name) else { return }
        section.warn(
            "grant_type", "the proxy does not know this grant, and sends only its name: does it need `params`?")
    }

    private func checkDeprecated(_ grant: Grant) {
        let advice = "the \(grant) grant is deprecated (RFC 9700): use another one, or write `allow_deprecated: true`"
        section.need("allow_deprecated", for: "grant_type", saying: advice)
        if section.has("allow_deprecated"), !settings.allowDeprecated { section.error("grant_type", advice) }
    }

    // MARK: Endpoints

    private mutating func readEndpoints() {
        section.read("allow_plaintext", into: &settings.allowPlaintext, Grammar.boolean)
        settings.issuer = section.value("issuer", Self.issuer)
        settings.tokenEndpoint = section.value("token_endpoint", Grammar.endpoint)
        settings.authorizationEndpoint = section.value("authorization_endpoint", Grammar.endpoint)
        settings.revocationEndpoint = section.value("revocation_endpoint", Grammar.endpoint)
        settings.deviceAuthorizationEndpoint = section.value("device_authorization_endpoint", Grammar.endpoint)
        settings.pushedAuthorizationEndpoint = section.value("pushed_authorization_request_endpoint", Grammar.endpoint)
    }

    private func checkNeeds() {
        if !mayOmitClientID {
            let name = section.shownName(of: "client_id")
            let advice = "\(name) is missing: write the identifier that the authorization server issued"
            // Without a sign-in, a client assertion identifies the client, too (RFC 7521, section 4.2).
            if settings.needsLogin || !settings.grantType.hasTokenEndpoint {
                section.need("client_id", saying: advice)
            } else {
                section.need("client_id", "client_assertion", saying: advice)
            }
        }
        if settings.grantType.hasTokenEndpoint {
            let (name, other) = (section.shownName(of: "token_endpoint"), section.shownName(of: "issuer"))
            let shown = section.diagnostics.variables.isEmpty ? "`issuer`" : other
            section.need(
                "token_endpoint", "issuer",
                saying: "\(name) is missing: write the URL that issues tokens, or \(shown)")
        }
    }

    private func checkPlaintext() {
        guard !settings.allowPlaintext else { return }
        for (key, url) in settings.endpoints where WebURL.scheme(of: url) == .http {
            section.refusePlaintext(key, "secrets and tokens would cross the network in plain text")
        }
    }

    // MARK: Client authentication

    mutating func readAuthentication() {
        section.read("client_id", into: &settings.clientID, Grammar.printable)
        settings.clientSecret = section.secret("client_secret", orEmpty: true)
        section.read("basic_encoding", into: &settings.basicEncoding, Grammar.word)
        readProof()
        if let tls = section.section("tls") {
            settings.tls = tls.tlsSettings(serverName: false)
            hasTLSCertificate = tls.has("cert_file")
        }
        let key = "token_endpoint_auth_method"
        let method: ClientSettings.AuthMethod? = section.value(key, Grammar.word)
        settings.authMethod = method ?? usualMethod
        section.check(
            by: key, method != nil || !section.has(key) ? settings.authMethod : nil,
            among: ClientSettings.AuthMethod.allCases.map { ($0, [$0.rawValue]) }
        ) { checkAuthentication($0) }
    }

    // MARK: Content of token requests

    private enum RefreshScope: String, CaseIterable { case granted, none }

    /// Fields that the client authentication or the connection sets, in lower case.
    private static let reservedHeaders = Grammar.framingFields.union([
        "authorization", "content-type", "accept-encoding", "content-encoding",
    ])

    private mutating func readScopes() {
        settings.scope = readScope()
        settings.resource = section.list("resource", Grammar.resource) ?? []
        settings.expectedPersons = section.list("expect", Grammar.nonempty) ?? []
        settings.username = section.value("username", Grammar.nonempty)
        settings.password = section.secret("password")
        section.deprecate("username", "password")
        settings.refreshToken = section.secret("refresh_token")
    }

    /// Reads the keys that `client: auto` has, too, apart from those of the client's authentication.
    mutating func readRequest() {
        section.read("par", into: &settings.pushedAuthorization, Grammar.word)
        settings.redirectURI = section.value("redirect_uri", Self.redirectURI)
        settings.audience = section.value("audience", Grammar.nonempty)
        settings.authorizationDetails = readAuthorizationDetails()
        readParams()
        var refreshScope = RefreshScope.granted
        section.read("refresh_scope", into: &refreshScope, Grammar.word)
        settings.refreshesWithScope = refreshScope == .granted
        settings.headers = section.pairs(
            "headers",
            name: { text throws(BadValue) in
                try Grammar.headerName(
                    text, not: Self.reservedHeaders, "is set by the token request itself and can't be an extra header")
            }, value: Grammar.headerValue
        ).map { HeimdallrHTTPField(name: $0.name, value: $0.value) }
        settings.treatAsBearer = section.list("treat_as_bearer", Self.tokenType) ?? []
        settings.labels = section.pairs("labels", name: Grammar.labelName, value: Grammar.any)
        section.nextProxy("proxy", into: &settings.proxy, usual: isAuto ? nil : "none")
        readLifetime()
        readDPoP()
        readExport()
    }

    private mutating func readExport() {
        section.read("exportable", into: &settings.isExportable, Grammar.boolean)
        settings.file = section.section("file").flatMap(Self.tokenFile)
        section.refuse(
            "file", without: "exportable", saying: "other programs read the file: write `exportable: true` too")
        if section.has("exportable"), settings.file != nil, !settings.isExportable {
            section.error("file", "other programs read the file: write `exportable: true`")
        }
        guard settings.isExportable else { return }
        let other = "and another program can't use such a token: leave one of them out"
        if settings.dpop != .off { section.error("exportable", "`dpop` binds the tokens to the proxy's key, \(other)") }
        if settings.certificateBound {
            section.error("exportable", "`certificate_bound` binds the tokens to the proxy's certificate, \(other)")
        }
    }

    /// Reads a list of scopes, or a text with all scopes. Warns of a comma, which does not separate scopes.
    private func readScope() -> [String] {
        var hasComma = false
        let groups = section.list("scope") { text throws(BadValue) in
            let tokens = try Grammar.scopes(text)
            hasComma = hasComma || tokens.contains { $0.contains(",") }
            return tokens
        }
        if hasComma {
            section.warn(
                "scope",
                "a comma is part of a scope's name: for several scopes write [read, write] or \"read write\"")
        }
        return (groups ?? []).flatMap { $0 }
    }

    private static func tokenType(_ text: String) throws(BadValue) -> String {
        try Grammar.checked(text, Grammar.isVisible(text), BadValue("write a token_type such as access_token"))
    }

    // MARK: Times

    private mutating func readLifetime() {
        settings.defaultExpiresIn = lifetime("default_expires_in")
        settings.tokenLifetime = lifetime("token_lifetime")
        section.refuse(
            "default_expires_in", with: "token_lifetime",
            saying: "`token_lifetime` holds for every answer: leave one of them out")
        settings.defaultTokenType = section.value("default_token_type", Self.tokenType)
        section.read("refresh_before", into: &settings.refreshBefore, Grammar.duration(.zero...Section.day))
        section.read("timeout", into: &settings.timeout, Grammar.duration(.milliseconds(1) ... .seconds(3600)))
        section.read("http2", into: &settings.http2, HTTP2Use.init(text:))
    }

    private func lifetime(_ key: String) -> Duration? {
        section.value(key, Grammar.durationOrOff(.seconds(1)...Section.day * 365)).map {
            $0 ?? HeimdallrConfiguration.endless
        }
    }
}
