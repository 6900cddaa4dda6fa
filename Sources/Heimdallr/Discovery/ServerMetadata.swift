internal import WireText

/// The addresses of an authorization server, by the names that RFC 8414 section 2 gives them.
enum Endpoint: String, Sendable, Hashable, CaseIterable {
    case token = "token_endpoint"
    case authorization = "authorization_endpoint"
    case revocation = "revocation_endpoint"
    case deviceAuthorization = "device_authorization_endpoint"
    case pushedAuthorization = "pushed_authorization_request_endpoint"
    case keys = "jwks_uri"
    case userInfo = "userinfo_endpoint"
    case registration = "registration_endpoint"

    /// Whether this is an endpoint that the client itself calls, authenticated.
    var hasAlias: Bool {
        switch self {
        case .token, .revocation, .deviceAuthorization, .pushedAuthorization, .userInfo: true
        case .authorization, .keys, .registration: false
        }
    }
}

/// Metadata of an issuer: RFC 8414, OpenID Connect Discovery 1.0.
struct ServerMetadata: Sendable, Equatable {
    /// Addresses as sent, checked only when they are used.
    var endpoints: [Endpoint: String] = [:]
    /// Where the same endpoints ask for a client certificate: RFC 8705 section 5.
    var aliases: [Endpoint: String] = [:]
    /// RFC 9207: every answer to the browser names the issuer.
    var alwaysNamesIssuer = false
    /// RFC 9126.
    var requiresPushing = false
    /// Whether `code_challenge_methods_supported` has S256 (RFC 7636).
    var provesCodes = false
    /// `client_id_metadata_document_supported`: the address of such a document can be the `client_id`.
    var readsClientDocuments = false
    /// `scopes_supported`.
    var scopes: [String] = []
    /// `token_endpoint_auth_methods_supported`; `nil`: the document has no list.
    var authMethods: [String]?
    /// `grant_types_supported`; `nil`: the document has no list.
    var grantTypes: [String]?

    /// - Throws: `DiscoveryFault.malformed`, or `.otherIssuer` unless `issuer` is named exactly.
    init(_ body: [UInt8], issuer: String) throws(DiscoveryFault) {
        guard let value = try? JSONParser.parse(body), case .object = value, let named = value["issuer"]?.string else {
            throw .malformed
        }
        guard named.utf8.elementsEqual(issuer.utf8) else { throw .otherIssuer(ForeignText.printable(named)) }
        for endpoint in Endpoint.allCases { endpoints[endpoint] = value[endpoint.rawValue]?.string }
        let aliases = value["mtls_endpoint_aliases"]
        for endpoint in Endpoint.allCases where endpoint.hasAlias {
            self.aliases[endpoint] = aliases?[endpoint.rawValue]?.string
        }
        alwaysNamesIssuer = value["authorization_response_iss_parameter_supported"] == .bool(true)
        requiresPushing = value["require_pushed_authorization_requests"] == .bool(true)
        provesCodes = Self.texts(value["code_challenge_methods_supported"])?.contains("S256") ?? false
        readsClientDocuments = value["client_id_metadata_document_supported"] == .bool(true)
        scopes = Self.texts(value["scopes_supported"]) ?? []
        authMethods = Self.texts(value["token_endpoint_auth_methods_supported"])
        grantTypes = Self.texts(value["grant_types_supported"])
    }

    private static func texts(_ value: JSONValue?) -> [String]? {
        guard case .array(let elements)? = value else { return nil }
        return elements.compactMap(\.string)
    }

    /// - Throws: `DiscoveryFault.missing`, or `.unusable` for what the configuration would not be allowed to name either.
    /// - Parameter throughAlias: whether the client authenticates with a certificate.
    func url(_ endpoint: Endpoint, allowPlaintext: Bool, throughAlias: Bool = false) throws(DiscoveryFault) -> String {
        guard let url = named(endpoint, throughAlias: throughAlias) else { throw .missing(endpoint.rawValue) }
        guard (try? TokenEndpointURL.check(url, allowPlaintext: allowPlaintext)) != nil else {
            throw .unusable(endpoint.rawValue)
        }
        return url
    }

    func named(_ endpoint: Endpoint, throughAlias: Bool) -> String? {
        throughAlias ? aliases[endpoint] ?? endpoints[endpoint] : endpoints[endpoint]
    }

    /// Returns the possible addresses of an issuer's metadata, in order: RFC 8414 section 3.1 (well-known part before the
    /// path), RFC 8414 section 5 (the same for OpenID Connect), OpenID Connect Discovery section 4.1 (well-known part appended).
    static func addresses(of issuer: String) -> [String] {
        var base = issuer
        while base.hasSuffix("/") { base.removeLast() }
        guard let scheme = base.firstRange(of: "://") else { return [] }
        let path = base[scheme.upperBound...].firstIndex(of: "/") ?? base.endIndex
        let inserted = ["oauth-authorization-server", "openid-configuration"].map {
            "\(base[..<path])/.well-known/\($0)\(base[path...])"
        }
        let appended = "\(base)/.well-known/openid-configuration"
        return inserted + (inserted.contains(appended) ? [] : [appended])
    }
}
