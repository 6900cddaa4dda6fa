internal import Cryptography
import WireText

/// What a signature says of a request's body. Loop's thread only.
public final class PayloadDigest {
    private let digest: RunningDigest

    /// - Throws: when libcrypto lacks memory.
    public init() throws { digest = try RunningDigest() }

    public func update(_ bytes: Span<UInt8>) throws { try digest.update(bytes) }

    /// 64 hexadecimal digits.
    public func finish() throws -> [UInt8] { try digest.finish().hexadecimal }

    /// Of no body at all.
    public static let empty = Array("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".utf8)
    /// The body is not signed; S3 takes that, and only over TLS is it worth anything.
    public static let unsigned = Array("UNSIGNED-PAYLOAD".utf8)
}

extension [UInt8] {
    /// In small letters.
    var hexadecimal: [UInt8] { flatMap { [ASCII.hexDigit($0 >> 4), ASCII.hexDigit($0 & 0x0F)] } }
}
