internal import Cryptography
internal import HTTPMessage
import Synchronization
internal import WireText

/// Proof of possession of a client's tokens: RFC 9449.
public enum DPoPSetting: Sendable {
    /// A P-256 key that is generated at the first use and stored in the record.
    case ownKey
    /// A configured key, PEM or JWK, read before each token request. `algorithm`: `nil` for the key's usual algorithm.
    case key(any SecretProvider, algorithm: JWTAlgorithm?)
}

extension DPoPSetting: Equatable {
    /// Whether both are the same kind of key. Configured keys are equal only if the provider is one object.
    public static func == (one: DPoPSetting, other: DPoPSetting) -> Bool {
        switch (one, other) {
        case (.ownKey, .ownKey): true
        case (.key(let key, let algorithm), .key(let otherKey, let otherAlgorithm)):
            algorithm == otherAlgorithm && (key as AnyObject) === (otherKey as AnyObject)
        case (.ownKey, .key), (.key, .ownKey): false
        }
    }
}

/// The key and the nonces of one client. Any thread.
final class DPoPBinding: Sendable {
    private let source: SigningKeySource?
    private let wallClock: @Sendable () -> Int64
    private let state = Mutex<State>(State())

    private struct State {
        var own: DPoPKey?
        var configured: DPoPKey?
        /// Nonces with the origins that sent them, oldest first.
        var nonces: [(origin: String, nonce: String)] = []
    }

    private static let maxNonces = 8
    private static let maxBits = 4096

    /// - Parameter wallClock: seconds since 1970.
    init(_ setting: DPoPSetting, wallClock: @escaping @Sendable () -> Int64) {
        self.wallClock = wallClock
        switch setting {
        case .ownKey: source = nil
        case .key(let provider, let algorithm): source = SigningKeySource(provider, algorithm: algorithm)
        }
    }

    /// Returns the key for the next token request.
    /// - Throws: `SecretProviderError`, or the provider's error.
    func key() async throws -> DPoPKey {
        guard let source else { return try ownKey() }
        let (key, algorithm) = try await source.current()
        // Each request is signed with this key on the event loop, so a slow key would delay other requests.
        guard key.bits <= Self.maxBits else {
            throw SecretProviderError(
                "the DPoP key has \(key.bits) bits, and signing takes too long: use a key of at most 4096 bits")
        }
        return state.withLock { state in
            if let last = state.configured, last.key === key, last.algorithm == algorithm { return last }
            let made = DPoPKey(key, algorithm)
            state.configured = made
            return made
        }
    }

    private func ownKey() throws -> DPoPKey {
        try state.withLock { state in
            if let own = state.own { return own }
            do {
                let key = try SigningKey.generate()
                let made = DPoPKey(key, try key.algorithm())
                state.own = made
                return made
            } catch {
                throw SecretProviderError("a DPoP key can't be made: \(error)")
            }
        }
    }

    /// Returns the header field with a proof for a request to `url`, with the newest nonce of that server.
    func proof(
        by key: DPoPKey, method: String, url: String, token: AccessToken?
    ) throws(SecretProviderError) -> HeimdallrHTTPField {
        let proof = try key.proof(method: method, url: url, token: token, nonce: nonce(for: url), now: wallClock())
        return HeimdallrHTTPField(name: "DPoP", secret: proof)
    }

    // MARK: Records

    /// Adds the thumbprint of the token's key to a record for the store, and also the key unless it is configured.
    func completed(_ record: TokenRecord) -> TokenRecord {
        var record = record
        record.keyThumbprint = try? record.binding?.thumbprint()
        if source == nil, let own = state.withLock({ $0.own }) { record.dpopKey = try? own.exported() }
        return record
    }

    /// Takes over the key of a stored record. Drops an access token that is not bound to this key.
    func takingUp(_ record: TokenRecord) async -> TokenRecord {
        var record = record
        if source != nil {
            record.binding = try? await key()
        } else if let exported = record.dpopKey, let key = try? DPoPKey(exported: exported) {
            let kept = state.withLock { state in
                if let own = state.own, (try? own.thumbprint()) == (try? key.thumbprint()) { return own }
                state.own = key
                return key
            }
            record.binding = kept
        }
        // An access token that is bound to another key, or to none, can't be used with this key.
        if record.binding == nil || record.keyThumbprint != (try? record.binding?.thumbprint()) {
            record.binding = nil
            record.accessToken = nil
        }
        return record
    }

    // MARK: Nonces

    func nonce(for url: String) -> String? {
        let origin = WebURL.origin(of: url)
        return state.withLock { state in state.nonces.first { $0.origin == origin }?.nonce }
    }

    /// Notes the nonce of a response. A server may send a new nonce with any response (RFC 9449 section 8.2).
    func note(_ response: HeimdallrHTTPResponse, from url: String) {
        guard let value = response.header(DPoPNonce.field), let nonce = DPoPNonce.read(Array(value.utf8).span) else {
            return
        }
        let origin = WebURL.origin(of: url)
        state.withLock { state in
            state.nonces.removeAll { $0.origin == origin }
            if state.nonces.count >= Self.maxNonces { state.nonces.removeFirst() }
            state.nonces.append((origin, nonce))
        }
    }
}
