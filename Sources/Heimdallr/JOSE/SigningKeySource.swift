internal import Cryptography
import Synchronization

/// A private key that is asked for anew for each signature, and read only when it has changed.
final class SigningKeySource: Sendable {
    private let provider: any SecretProvider
    private let wanted: SigningAlgorithm?
    private let kept = Mutex<Kept?>(nil)

    private struct Kept {
        var text: Secret
        var key: SigningKey
        var algorithm: SigningAlgorithm
    }

    /// - Parameter algorithm: `nil`: the JWK's own, or the usual one of the key's kind.
    init(_ provider: any SecretProvider, algorithm: SigningAlgorithm?) {
        self.provider = provider
        wanted = algorithm
    }

    /// - Throws: errors of the provider; `SecretProviderError` for text that is no key, or no key for this algorithm.
    func current() async throws -> (key: SigningKey, algorithm: SigningAlgorithm) {
        try current(try await provider.secret())
    }

    /// The same for a key that was read before.
    func current(_ text: Secret) throws -> (key: SigningKey, algorithm: SigningAlgorithm) {
        if let kept = kept.withLock({ $0 }), kept.text == text { return (kept.key, kept.algorithm) }
        do throws(CryptographyError) {
            let key = try SigningKey(text: text.bytes)
            let algorithm = try key.algorithm(wanted: wanted)
            kept.withLock { $0 = Kept(text: text, key: key, algorithm: algorithm) }
            return (key, algorithm)
        } catch {
            throw SecretProviderError("the signing key can't be used: \(error)")
        }
    }
}
