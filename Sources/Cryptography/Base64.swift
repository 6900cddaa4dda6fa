/// RFC 4648: section 4 (padded, `+/`) and section 5 (`-_`, here without padding, as RFC 7636 and 7515 want it).
public enum Base64 {
    public enum Alphabet: Sendable {
        case standard
        case url
    }

    public static func encode(_ bytes: [UInt8], alphabet: Alphabet = .standard) -> String {
        var output: [UInt8] = []
        output.reserveCapacity((bytes.count + 2) / 3 * 4)
        encode(bytes.span, alphabet) { output.append($0) }
        return String(decoding: output, as: UTF8.self)
    }

    /// Leaves no copy of the secret, nor of what it makes of it.
    public static func encode(_ secret: SecretBytes, alphabet: Alphabet = .standard) -> SecretBytes {
        var output = SecretWriter(capacity: (secret.count + 2) / 3 * 4)
        secret.withSpan { bytes in encode(bytes, alphabet) { output.append($0) } }
        return output.finish()
    }

    private static func encode(_ bytes: Span<UInt8>, _ alphabet: Alphabet, to output: (UInt8) -> Void) {
        let digits = alphabet == .standard ? standardDigits : urlDigits
        var index = 0
        while index < bytes.count {
            let left = bytes.count - index
            let first = bytes[index]
            let second = left > 1 ? bytes[index + 1] : 0
            let third = left > 2 ? bytes[index + 2] : 0
            output(digits[Int(first >> 2)])
            output(digits[Int((first & 0x03) << 4 | second >> 4)])
            if left > 1 { output(digits[Int((second & 0x0F) << 2 | third >> 6)]) }
            if left > 2 { output(digits[Int(third & 0x3F)]) }
            if alphabet == .standard {
                for _ in 0..<max(0, 3 - left) { output(UInt8(ascii: "=")) }
            }
            index += 3
        }
    }

    /// Takes both alphabets, padded or not; `nil` for anything else, leftover bits included.
    public static func decode(_ text: [UInt8]) -> [UInt8]? {
        var digits = text[...]
        var padding = 0
        while padding < 2, digits.last == UInt8(ascii: "=") {
            digits.removeLast()
            padding += 1
        }
        guard padding == 0 || (digits.count + padding) % 4 == 0, digits.count % 4 != 1 else { return nil }
        var output: [UInt8] = []
        output.reserveCapacity(digits.count * 3 / 4)
        var bits: UInt32 = 0
        var count = 0
        for digit in digits {
            guard let value = value(of: digit) else { return nil }
            bits = bits << 6 | value
            count += 6
            if count >= 8 {
                count -= 8
                output.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
                bits &= (1 << UInt32(count)) - 1
            }
        }
        return bits == 0 ? output : nil
    }

    private static let standardDigits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let urlDigits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    private static func value(of digit: UInt8) -> UInt32? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
        case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
