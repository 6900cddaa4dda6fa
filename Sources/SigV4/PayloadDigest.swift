internal import Cryptography
import WireText

/// Digest of a request's body for its signature. Loop's thread only.
public final class PayloadDigest {
    private let digest: RunningDigest

    /// - Throws: when libcrypto lacks memory.
    public init() throws { digest = try RunningDigest() }

    public func update(_ bytes: Span<UInt8>) throws { try digest.update(bytes) }

    /// 64 hexadecimal digits.
    public func finish() throws -> [UInt8] { try digest.finish().hexadecimal }

    /// Digest of an empty body.
    public static let empty = Array("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".utf8)
    /// Marks an unsigned body. S3 accepts it; only TLS protects such a body.
    public static let unsigned = Array("UNSIGNED-PAYLOAD".utf8)
}
