internal import Cryptography
import WireText

/// SHA-256 of a request's body, for the request's signature. Loop's thread only.
public final class PayloadDigest {
    private let digest: RunningDigest

    /// - Throws: an error when libcrypto lacks memory.
    public init() throws { digest = try RunningDigest() }

    public func update(_ bytes: Span<UInt8>) throws { try digest.update(bytes) }

    /// Returns the digest as 64 hexadecimal digits.
    public func finish() throws -> [UInt8] { try digest.finish().hexadecimal }

    /// Digest of an empty body.
    public static let empty = Array("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".utf8)
    /// Stands for the digest of an unsigned body, which S3 accepts. Only TLS protects such a body.
    public static let unsigned = Array("UNSIGNED-PAYLOAD".utf8)
}
