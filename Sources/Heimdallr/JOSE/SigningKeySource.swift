internal import Cryptography
import Synchronization

/// A private key whose text is read for each signature, but parsed only after it has changed.
final class SigningKeySource: Sendable {
    private let provider: any SecretProvider
    private let wanted: SigningAlgorithm?
    private let kept = Mutex<(text: Secret, key: SigningKey, algorithm: SigningAlgorithm)?>(nil)

    /// - Parameter algorithm: `nil`: the JWK's `alg`, or the usual algorithm for this kind of key.
    init(_ provider: any SecretProvider, algorithm: JWTAlgorithm?) {
        self.provider = provider
        wanted = algorithm.flatMap { SigningAlgorithm(rawValue: $0.rawValue) }
    }

    /// Returns the current key. Throws the provider's error, or `SecretProviderError` for an unusable key or algorithm.
    func current() async throws -> (key: SigningKey, algorithm: SigningAlgorithm) {
        try current(try await provider.secret())
    }

    /// Returns the current key. `text` is the text that the provider has just returned.
    func current(_ text: Secret) throws -> (key: SigningKey, algorithm: SigningAlgorithm) {
        if let kept = kept.withLock({ $0 }), kept.text == text { return (kept.key, kept.algorithm) }
        do throws(CryptographyError) {
            let key = try SigningKey(text: text.bytes)
            let algorithm = try key.algorithm(wanted: wanted)
            kept.withLock { $0 = (text, key, algorithm) }
            return (key, algorithm)
        } catch {
            throw SecretProviderError("the signing key can't be used: \(error)")
        }
    }
}

/// Signature algorithm of a JWT, with its JOSE name: RFC 7518 section 3.1, RFC 8037 section 3.1.
public enum JWTAlgorithm: String, Sendable, Hashable, CaseIterable {
    /// RSASSA-PKCS1-v1_5 with SHA-256; for RSA keys.
    case rs256 = "RS256"
    /// RSASSA-PSS with SHA-256; for RSA keys.
    case ps256 = "PS256"
    /// ECDSA with SHA-256; for P-256 keys.
    case es256 = "ES256"
    /// ECDSA with SHA-384; for P-384 keys.
    case es384 = "ES384"
    /// Ed25519.
    case edDSA = "EdDSA"
}

/// Audience (`aud`) of an assertion. Servers differ in the value that they expect.
public enum JWTAudience: Sendable, Hashable {
    /// The token endpoint's URL, even for requests to other endpoints.
    case tokenEndpoint
    /// The configured issuer.
    case issuer
    /// This text.
    case text(String)

    /// - Parameter assertion: name of the assertion in error messages.
    func text(of assertion: String, tokenEndpoint: String?, issuer: String?) throws(SecretProviderError) -> String {
        switch self {
        case .text(let text): return text
        case .tokenEndpoint:
            if let tokenEndpoint { return tokenEndpoint }
            throw SecretProviderError("\(assertion) needs the token endpoint, which is not known")
        case .issuer:
            if let issuer { return issuer }
            throw SecretProviderError("\(assertion) names the issuer, and none is configured")
        }
    }
}
