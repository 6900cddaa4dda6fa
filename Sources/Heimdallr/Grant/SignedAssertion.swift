internal import Cryptography
internal import WireText

/// A JWT as a grant (RFC 7523 section 3). Each token request has a new JWT with a new `jti`.
public struct SignedAssertion: Sendable {
    /// Names that `claims` can't have, because other settings make these claims.
    public static let reservedClaims: Set<String> = ["iss", "sub", "aud", "iat", "exp", "jti", "scope"]

    private let source: any SecretProvider
    private let key: SigningKeySource
    /// `kid`; `nil`: that of the key file, if any.
    public var keyID: String?
    /// `iss`; `nil`: the mail address of a Google service account, or else the `client_id`.
    public var issuer: String?
    /// `sub`; `nil`: the issuer. For a Google service account `nil` omits the claim, and the account acts for itself.
    public var subject: String?
    /// `aud`.
    public var audience = JWTAudience.tokenEndpoint
    /// `scope`, for servers that expect it in the assertion. Empty: no claim.
    public var scope: [String] = []
    /// Further claims. Those in `reservedClaims` are ignored.
    public var claims: [String: JSONValue] = [:]
    /// Lifetime of the assertion, at most an hour. A longer time counts as an hour.
    public var expiresIn = Duration.seconds(300)

    /// - Parameters:
    ///   - key: PEM (PKCS#8, PKCS#1 or SEC1, without a passphrase), a JWK, or the JSON file of a Google service
    ///     account. It is read before each request.
    ///   - algorithm: `nil`: the JWK's `alg`, or the usual algorithm for this kind of key; RS256 for RSA.
    public init(key: any SecretProvider, algorithm: JWTAlgorithm? = nil) {
        source = key
        self.key = SigningKeySource(key, algorithm: algorithm)
    }

    /// - Throws: the provider's error, or `SecretProviderError`.
    func sign(for request: GrantRequest) async throws -> Secret {
        let file = KeyFile(try await source.secret())
        let (key, algorithm) = try self.key.current(file.key)
        guard let issuer = issuer ?? file.account ?? (request.client.isEmpty ? nil : request.client) else {
            throw SecretProviderError("the assertion has no issuer: set the issuer, or the client_id")
        }
        let audience = try audience.text(
            of: "the assertion", tokenEndpoint: request.tokenEndpoint, issuer: request.issuer)
        var header: [JSON.Member] = [.init("typ", "JWT")]
        if let keyID = keyID ?? file.keyID ?? key.identifier { header.append(.init("kid", .string(keyID))) }
        do throws(CryptographyError) {
            let now = Int(WallClock.now())
            var members: [JSON.Member] = [.init("iss", .string(issuer))]
            if let subject = subject ?? (file.account == nil ? issuer : nil) {
                members.append(.init("sub", .string(subject)))
            }
            members.append(.init("aud", .string(audience)))
            if !scope.isEmpty { members.append(.init("scope", .string(scope.joined(separator: " ")))) }
            let seconds = min(max(1, expiresIn.components.seconds), 3600)
            members += [
                .init("iat", .number(now)), .init("exp", .number(now + Int(seconds))),
                .init("jti", .string(try RandomBytes.identifier())),
            ]
            for (name, value) in claims.sorted(by: { $0.key < $1.key }) where !Self.reservedClaims.contains(name) {
                members.append(.init(name, JSON(value)))
            }
            return try SignedJWT.sign(header: header, claims: members, with: .key(key, algorithm))
        } catch {
            throw SecretProviderError("the assertion could not be signed: \(error)")
        }
    }
}

/// A key, with the account's name if the file is that of a Google service account.
private struct KeyFile {
    var key: Secret
    var keyID: String?
    /// The account's mail address.
    var account: String?

    init(_ text: Secret) {
        key = text
        guard let members = text.withSpan({ try? JSONParser.members($0) }) else { return }
        func string(_ name: String) -> Secret? {
            text.withSpan { members[name]?.secretBytes(in: $0) }.map { Secret($0) }
        }
        guard let inner = string("private_key") else { return }
        key = inner
        keyID = string("private_key_id")?.revealed
        account = string("client_email")?.revealed
    }
}
