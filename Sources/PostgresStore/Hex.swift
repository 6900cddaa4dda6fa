import Cryptography

enum Hex {
    /// The first 16 bytes of a SHA-256 over the parts, each with its length in front.
    static func digest(_ parts: [String]) -> String { text(Array(bytes(parts).prefix(16))) }

    static func bytes(_ parts: [String]) -> [UInt8] {
        var input: [UInt8] = []
        for part in parts {
            input += stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: part.utf8.count >> $0) }
            input += Array(part.utf8)
        }
        return (try? Digest.sha256(input)) ?? []
    }

    static func text(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
