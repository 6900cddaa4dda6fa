internal import Cryptography
internal import WireText

/// A client that authenticates with a JWT in the form: RFC 7523 section 2.2. Each request has a new assertion.
public struct OAuthClientAssertionCredentials: OAuthClientCredentials {
    public let identifier: String
    /// `typ` of an assertion that is signed here. Most servers take `JWT`; some take only `explicitType`.
    public var typ = "JWT"
    private let source: Source
    private var audience: JWTAudience
    /// `client_assertion_type` (RFC 7521 section 4.2).
    private var assertionType = Self.jwtBearer

    /// `typ` by which servers distinguish client assertions from other JWTs: RFC 7523bis (draft) section 4.
    public static let explicitType = "client-authentication+jwt"
    /// `client_assertion_type` of a JWT: RFC 7523 section 2.2.
    public static let jwtBearer = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

    private enum Source: Sendable {
        case secret(any SecretProvider)
        case key(SigningKeySource, identifier: String?, certificate: (any SecretProvider)?)
        case assertion(any SecretProvider)
    }

    /// Lifetime of an assertion in seconds: long enough for slow requests and clock skew.
    static let life: Int64 = 120
    /// Age of `iat` and `nbf` in seconds, because a server whose clock is behind would refuse the present time.
    private static let early: Int64 = 60

    /// `client_secret_jwt`: signed with HS256 and the shared client secret, which is read before each request.
    public init(identifier: String, secret: any SecretProvider, audience: JWTAudience = .tokenEndpoint) {
        self.identifier = identifier
        self.audience = audience
        source = .secret(secret)
    }

    /// `private_key_jwt`: signed with a private key whose public key the server knows.
    /// - Parameters:
    ///   - identifier: the `client_id`, which is also the assertion's issuer and subject.
    ///   - key: PEM (PKCS#8, PKCS#1 or SEC1, without a passphrase) or a JWK, read before each request. RSA of at least
    ///     2048 bits, P-256, P-384 or Ed25519.
    ///   - algorithm: `nil`: the JWK's `alg`, or the usual algorithm for this kind of key; RS256 for RSA.
    ///   - keyID: `kid` of the assertion; `nil`: the JWK's `kid`, if any.
    ///   - certificate: the key's certificate in PEM, for servers that identify the key by its digest (`x5t#S256`).
    ///   - audience: the assertion's `aud`. With `HeimdallrConfiguration.enrolment`, `.tokenEndpoint` means the issuer.
    public init(
        identifier: String, key: any SecretProvider, algorithm: JWTAlgorithm? = nil, keyID: String? = nil,
        certificate: (any SecretProvider)? = nil, audience: JWTAudience = .tokenEndpoint
    ) {
        self.identifier = identifier
        self.audience = audience
        source = .key(SigningKeySource(key, algorithm: algorithm), identifier: keyID, certificate: certificate)
    }

    /// An assertion that another party makes and renews, such as the platform on which the program runs. It is read
    /// before each request.
    /// - Parameters:
    ///   - identifier: the `client_id`; empty: the assertion alone identifies the client, and none is sent.
    ///   - assertion: returns the assertion for each request.
    ///   - type: `client_assertion_type`, a URI, such as that of a JWT-SVID of SPIFFE.
    public init(identifier: String, assertion: any SecretProvider, type: String = Self.jwtBearer) {
        self.identifier = identifier
        audience = .tokenEndpoint
        assertionType = type
        source = .assertion(assertion)
    }

    /// A copy whose audience is the issuer instead of the token endpoint: metadata could name a foreign token endpoint.
    var forIssuer: Self {
        var copy = self
        if audience == .tokenEndpoint { copy.audience = .issuer }
        return copy
    }

    public var authentication: ClientAuthentication {
        switch source {
        case .secret: .sharedKey
        case .key: .key
        case .assertion: .assertion
        }
    }

    public var needsTokenEndpoint: Bool {
        if case .assertion = source { return false }
        return audience == .tokenEndpoint
    }

    /// - Throws: the provider's error, or `SecretProviderError`.
    public func authenticate(_ request: inout TokenRequest) async throws {
        let assertion = try await assertion(for: &request)
        request.secrets.append(assertion)
        request.form.removeAll { $0.name == "client_secret" }
        if !identifier.isEmpty { request.set(FormParameter("client_id", identifier)) }
        request.set(FormParameter("client_assertion_type", assertionType))
        request.set(FormParameter("client_assertion", assertion))
    }

    private func assertion(for request: inout TokenRequest) async throws -> Secret {
        switch source {
        case .assertion(let provider): return try await provider.secret()
        case .secret(let provider):
            let secret = try await provider.secret()
            request.secrets.append(secret)
            return try sign(header: [], request, with: .secret(secret))
        case .key(let source, let identifier, let certificate):
            let (key, algorithm) = try await source.current()
            var header: [JSON.Member] = []
            if let identifier = identifier ?? key.identifier { header.append(.init("kid", .string(identifier))) }
            if let certificate {
                let digest = try await Self.digest(of: certificate, for: key)
                header.append(.init("x5t#S256", .string(Base64.encode(digest, alphabet: .url))))
            }
            return try sign(header: header, request, with: .key(key, algorithm))
        }
    }

    /// Signs the claims of RFC 7523 section 3. Entra ID also requires `nbf`.
    private func sign(header: [JSON.Member], _ request: TokenRequest, with signer: SignedJWT.Signer) throws -> Secret {
        let now = WallClock.now()
        let audience = try audience.text(
            of: "the client assertion", tokenEndpoint: request.tokenEndpoint, issuer: request.issuer)
        do throws(CryptographyError) {
            return try SignedJWT.sign(
                header: [.init("typ", .string(typ))] + header,
                claims: [
                    .init("iss", .string(identifier)), .init("sub", .string(identifier)),
                    .init("aud", .string(audience)),
                    .init("jti", .string(try RandomBytes.identifier())), .init("iat", .number(Int(now - Self.early))),
                    .init("nbf", .number(Int(now - Self.early))), .init("exp", .number(Int(now + Self.life))),
                ], with: signer)
        } catch {
            throw SecretProviderError("the client assertion could not be signed: \(error)")
        }
    }

    private static func digest(of certificate: any SecretProvider, for key: SigningKey) async throws -> [UInt8] {
        let text = try await certificate.secret()
        do {
            guard let first = try X509Certificate.all(pem: text.revealedBytes).first, first.belongs(to: key) else {
                throw CryptographyError.key(.foreignCertificate)
            }
            return try first.digest()
        } catch {
            throw SecretProviderError("the client's certificate can't be used: \(error)")
        }
    }
}
