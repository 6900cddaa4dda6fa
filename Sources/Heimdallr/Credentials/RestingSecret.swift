internal import Cryptography

/// A secret kept for later use, sealed with a key of this process. Between uses, memory does not hold it in plain text.
struct RestingSecret: Sendable {
    private enum Form {
        case sealed([UInt8])
        /// Used if sealing is impossible.
        case plain(Secret)
    }

    private let form: Form

    private static let key: SealingKey? = {
        guard var bytes = try? RandomBytes.make(SealingKey.size) else { return nil }
        let secret = SecretBytes(bytes)
        SecretBytes.wipe(&bytes)
        return try? SealingKey(secret)
    }()
    private static let format: UInt8 = 1
    private static let context = Array("a secret of this process".utf8)

    init(_ secret: Secret) {
        if let key = Self.key,
            let sealed = try? SealedBytes.seal(secret.bytes, format: Self.format, context: Self.context, key: key)
        {
            form = .sealed(sealed)
        } else {
            form = .plain(secret)
        }
    }

    /// A copy in plain text, which is wiped from memory after use.
    var opened: Secret? {
        switch form {
        case .plain(let secret): return secret
        case .sealed(let bytes):
            guard let key = Self.key else { return nil }
            return (try? SealedBytes.open(bytes, format: Self.format, context: Self.context, key: key)).map {
                Secret($0)
            }
        }
    }
}
