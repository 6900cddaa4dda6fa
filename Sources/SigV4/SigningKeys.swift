internal import Cryptography
import Synchronization
import WireText

/// Credentials for signatures. Safe on any thread. Wiped when their last reference is released.
public final class SigningKeys: Sendable {
    /// Access key ID, which is not secret: each request contains it.
    public let accessKeyID: [UInt8]
    private let secret: SecretBytes
    private let token: SecretBytes?

    /// The signing key of a day, derived once.
    private struct Derived {
        var scope: [UInt8]
        var key: SecretBytes
    }
    private let derived = Mutex<Derived?>(nil)

    /// - Parameters:
    ///   - secret: the secret access key; copied.
    ///   - token: the session token of temporary credentials; copied. Empty for none.
    public init(accessKeyID: [UInt8], secret: Span<UInt8>, token: Span<UInt8>) {
        self.accessKeyID = accessKeyID
        self.secret = SecretBytes(secret)
        self.token = token.isEmpty ? nil : SecretBytes(token)
    }

    /// Lends the session token to `body`. Without a token, `body` is not called.
    public func withToken(_ body: (Span<UInt8>) -> Void) { token?.withSpan(body) }

    /// Returns the HMAC-SHA256 with the key derived for `scope`, such as `20130524/us-east-1/s3/aws4_request`.
    func sign(_ text: [UInt8], scope: [UInt8]) throws -> [UInt8] {
        let key = try derived.withLock { derived in
            if let derived, derived.scope == scope { return derived.key }
            let key = try derive(scope)
            derived = Derived(scope: scope, key: key)
            return key
        }
        return try Digest.hmacSHA256(text, key: key)
    }

    private func derive(_ scope: [UInt8]) throws -> SecretBytes {
        var start = SecretWriter(capacity: 4 + secret.count)
        start.append("AWS4")
        start.append(secret)
        var key = start.finish()
        for part in scope.split(separator: ASCII.slash) {
            var next = try Digest.hmacSHA256(Array(part), key: key)
            defer { SecretBytes.wipe(&next) }
            key = SecretBytes(next)
        }
        return key
    }
}
