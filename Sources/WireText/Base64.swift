/// RFC 4648: section 4 (padded, `+/`) and section 5 (`-_`, without padding, as RFC 7636 and 7515 want it).
public enum Base64 {
    public enum Alphabet: Sendable {
        case standard
        case url
    }

    /// The accepted form. In each form, leftover bits must be zero, so that they allow no second spelling.
    public enum Reading: Sendable {
        /// Both alphabets, padded or not, for files written by people.
        case either
        /// Section 4, with padding, as in RFC 7617.
        case padded
        /// Section 5, without padding, as in RFC 7515.
        case url
    }

    public static func encode(_ bytes: [UInt8], alphabet: Alphabet = .standard) -> String {
        var output: [UInt8] = []
        output.reserveCapacity((bytes.count + 2) / 3 * 4)
        encode(bytes.span, alphabet) { output.append($0) }
        return String(decoding: output, as: UTF8.self)
    }

    /// Writes byte by byte without a copy, for secrets.
    public static func encode(_ bytes: Span<UInt8>, _ alphabet: Alphabet, to output: (UInt8) -> Void) {
        var index = 0
        while index < bytes.count {
            let left = bytes.count - index
            let first = bytes[index]
            let second = left > 1 ? bytes[index + 1] : 0
            let third = left > 2 ? bytes[index + 2] : 0
            output(digit(first >> 2, alphabet))
            output(digit((first & 0x03) << 4 | second >> 4, alphabet))
            if left > 1 { output(digit((second & 0x0F) << 2 | third >> 6, alphabet)) }
            if left > 2 { output(digit(third & 0x3F, alphabet)) }
            if alphabet == .standard {
                for _ in 0..<max(0, 3 - left) { output(ASCII.equals) }
            }
            index += 3
        }
    }

    /// `nil` for text that is not base64 in that form.
    public static func decode(_ text: [UInt8], as reading: Reading) -> [UInt8]? {
        var output: [UInt8] = []
        output.reserveCapacity(text.count / 4 * 3 + 2)
        return decode(text.span, as: reading) { output.append($0) } ? output : nil
    }

    /// Decodes byte by byte without a copy, for secrets.
    /// - Returns: `false` for text that is not base64 in that form. The output so far is then invalid.
    public static func decode(_ text: Span<UInt8>, as reading: Reading, to output: (UInt8) -> Void) -> Bool {
        var end = text.count
        if reading != .url {
            while end > 0, text.count - end < 2, text[end - 1] == ASCII.equals { end -= 1 }
        }
        let isPadded = end < text.count || reading == .padded
        guard !isPadded || text.count % 4 == 0, end % 4 != 1 else { return false }
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for index in 0..<end {
            guard let value = value(of: text[index], reading) else { return false }
            bits = bits << 6 | UInt32(value)
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            output(UInt8(truncatingIfNeeded: bits >> count))
            bits &= (1 << count) - 1
        }
        return bits == 0
    }

    private static func digit(_ value: UInt8, _ alphabet: Alphabet) -> UInt8 {
        switch value {
        case 0..<26: UInt8(ascii: "A") + value
        case 26..<52: UInt8(ascii: "a") + (value - 26)
        case 52..<62: UInt8(ascii: "0") + (value - 52)
        case 62: alphabet == .standard ? ASCII.plus : ASCII.hyphen
        default: alphabet == .standard ? ASCII.slash : ASCII.underscore
        }
    }

    private static func value(of digit: UInt8, _ reading: Reading) -> UInt8? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0") + 52
        case ASCII.plus where reading != .url: 62
        case ASCII.slash where reading != .url: 63
        case ASCII.hyphen where reading != .padded: 62
        case ASCII.underscore where reading != .padded: 63
        default: nil
        }
    }
}
