/// Text of a query's value for people, whatever its encoding.
///
/// Pages that send a browser on write such text by other rules than RFC 6749 (appendix B): `%u00f3` by ECMAScript's
/// `escape`, Latin-1, or a percent sign that begins no escape.
public enum FormWords {
    /// Reads `%u00f3` as that character, bytes that are not UTF-8 as Latin-1, and any other percent sign as it is.
    public static func decode(_ value: some Collection<UInt8>) -> String {
        if let text = PercentEncoding.form.decode(value) { return text }
        let bytes = Array(value)
        var units: [UInt16] = []
        var plain: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == ASCII.percent, index + 1 < bytes.count, bytes[index + 1] | 0x20 == UInt8(ascii: "u"),
                let unit = hexadecimal(bytes, index + 2, digits: 4)
            {
                units += text(of: plain).utf16 + [unit]
                plain = []
                index += 6
            } else if bytes[index] == ASCII.percent, let byte = hexadecimal(bytes, index + 1, digits: 2) {
                plain.append(UInt8(truncatingIfNeeded: byte))
                index += 3
            } else {
                plain.append(bytes[index] == ASCII.plus ? ASCII.space : bytes[index])
                index += 1
            }
        }
        return String(decoding: units + text(of: plain).utf16, as: UTF16.self)
    }

    private static func text(of bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    private static func hexadecimal(_ bytes: [UInt8], _ start: Int, digits: Int) -> UInt16? {
        guard start + digits <= bytes.count else { return nil }
        var value: UInt16 = 0
        for byte in bytes[start..<start + digits] {
            guard let digit = ASCII.hexValue(byte) else { return nil }
            value = value << 4 | UInt16(digit)
        }
        return value
    }
}
