internal import HTTPMessage
internal import WireText

/// The endpoints of an authorization server, with their names from RFC 8414 section 2.
package enum Endpoint: String, Sendable, Hashable, CaseIterable {
    case token = "token_endpoint"
    case authorization = "authorization_endpoint"
    case deviceAuthorization = "device_authorization_endpoint"
    case revocation = "revocation_endpoint"
    case pushedAuthorization = "pushed_authorization_request_endpoint"
    case userInfo = "userinfo_endpoint"
    case keys = "jwks_uri"
    case registration = "registration_endpoint"

    /// Whether the server may have another address of this endpoint for mutual TLS (RFC 8705 section 5).
    var hasAlias: Bool {
        switch self {
        case .token, .revocation, .deviceAuthorization, .pushedAuthorization, .userInfo: true
        case .authorization, .keys, .registration: false
        }
    }
}

/// Metadata of an issuer: RFC 8414, OpenID Connect Discovery 1.0.
package struct ServerMetadata: Sendable, Equatable {
    /// The issuer as the server spells it. Its answers name it like this, byte for byte.
    var issuer: String
    /// Addresses as the server sent them. They are checked only when used.
    package var endpoints: [Endpoint: String] = [:]
    /// Addresses of the same endpoints for clients with a certificate: RFC 8705 section 5.
    var aliases: [Endpoint: String] = [:]
    /// Whether every authorization response names the issuer (RFC 9207).
    var alwaysNamesIssuer = false
    /// Whether the server requires pushed authorization requests (RFC 9126).
    var requiresPushing = false
    /// `code_challenge_methods_supported` (RFC 7636); empty: the document has no list.
    var challengeMethods: [String] = []
    /// `client_id_metadata_document_supported`: whether the URL of such a document can be the `client_id`.
    var readsClientDocuments = false
    /// `scopes_supported`.
    var scopes: [String] = []
    /// `token_endpoint_auth_methods_supported`; `nil`: the document has no list.
    package var authMethods: [String]?
    /// `grant_types_supported`; `nil`: the document has no list.
    package var grantTypes: [String]?

    /// - Throws: `DiscoveryFault.malformed`; `.otherIssuer` unless the document names this `issuer`.
    init(_ body: [UInt8], issuer: String) throws(DiscoveryFault) {
        guard let value = try? JSONParser.parse(body), case .object = value, let named = value["issuer"]?.string else {
            throw .malformed
        }
        guard Self.isSame(named, issuer) else { throw .otherIssuer(ForeignText.printable(named)) }
        self.issuer = named
        for endpoint in Endpoint.allCases { endpoints[endpoint] = value[endpoint.rawValue]?.string }
        let aliases = value["mtls_endpoint_aliases"]
        for endpoint in Endpoint.allCases where endpoint.hasAlias {
            self.aliases[endpoint] = aliases?[endpoint.rawValue]?.string
        }
        alwaysNamesIssuer = value["authorization_response_iss_parameter_supported"] == .bool(true)
        requiresPushing = value["require_pushed_authorization_requests"] == .bool(true)
        challengeMethods = value["code_challenge_methods_supported"]?.texts ?? []
        readsClientDocuments = value["client_id_metadata_document_supported"] == .bool(true)
        scopes = value["scopes_supported"]?.texts ?? []
        authMethods = value["token_endpoint_auth_methods_supported"]?.texts
        grantTypes = value["grant_types_supported"]?.texts
    }

    /// Whether two issuers are one. An empty path and `/` are the same (RFC 3986 section 6.2.3). Only for finding a
    /// server: `iss` is compared byte for byte.
    static func isSame(_ one: String, _ other: String) -> Bool { normal(one).elementsEqual(normal(other)) }

    private static func normal(_ issuer: String) -> Substring.UTF8View {
        let isBare = (try? WebURL(issuer)).map { $0.path == "/" && $0.query == nil } ?? false
        return (isBare ? issuer.dropLast() : issuer[...]).utf8
    }

    /// - Throws: `DiscoveryFault.missing`; `.unusable` for an address that may not get secrets.
    /// - Parameter throughAlias: whether the client authenticates with a certificate.
    func url(_ endpoint: Endpoint, allowPlaintext: Bool, throughAlias: Bool = false) throws(DiscoveryFault) -> String {
        guard let url = named(endpoint, throughAlias: throughAlias) else { throw .missing(endpoint.rawValue) }
        guard WebURL(url, allowPlaintext: allowPlaintext) != nil else { throw .unusable(endpoint.rawValue) }
        return url
    }

    func named(_ endpoint: Endpoint, throughAlias: Bool) -> String? {
        throughAlias ? aliases[endpoint] ?? endpoints[endpoint] : endpoints[endpoint]
    }

    /// Returns the possible addresses of an issuer's metadata, in order. RFC 8414 sections 3.1 and 5 insert the
    /// well-known part before the path. OpenID Connect Discovery section 4.1 appends it.
    static func addresses(of issuer: String) -> [String] {
        guard let url = try? WebURL(issuer) else { return [] }
        var path = url.path
        while path.hasSuffix("/") { path.removeLast() }
        let inserted = ["oauth-authorization-server", "openid-configuration"].map {
            "\(url.start)/.well-known/\($0)\(path)"
        }
        let appended = "\(url.start)\(path)/.well-known/openid-configuration"
        return inserted + (inserted.contains(appended) ? [] : [appended])
    }
}
