/// Percent-encoding of bytes, by rules that differ in the characters that stay unescaped.
public enum PercentEncoding: Sendable {
    /// RFC 3986 section 2.1: escapes all but the unreserved characters (letters, digits, `-`, `.`, `_`, `~`). A space
    /// is `%20`; decoding leaves a plus unchanged.
    case uri
    /// application/x-www-form-urlencoded of RFC 6749 appendix B: a space is `+`; escapes all but letters, digits, `-`,
    /// `.` and `_`.
    case form
    /// Escapes all but letters, digits, `-` and `_`, so that a file name is neither a path nor hidden.
    case fileName
    /// Rule of `grpc-message`: escapes the percent sign, and all but visible ASCII and the space.
    case grpcMessage

    @inlinable
    public func encode(_ bytes: Span<UInt8>, to output: (UInt8) -> Void) {
        for index in bytes.indices {
            let byte = bytes[index]
            switch byte {
            case _ where ASCII.isAlphanumeric(byte): output(byte)
            case ASCII.hyphen, ASCII.underscore: output(byte)
            case 0x20...0x7E where self == .grpcMessage && byte != ASCII.percent: output(byte)
            case ASCII.dot where self != .fileName: output(byte)
            case ASCII.tilde where self == .uri: output(byte)
            case ASCII.space where self == .form: output(ASCII.plus)
            default:
                output(ASCII.percent)
                output(ASCII.hexDigitUppercased(byte >> 4))
                output(ASCII.hexDigitUppercased(byte & 0x0F))
            }
        }
    }

    public func encode(_ bytes: [UInt8]) -> String {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count)
        encode(bytes.span) { output.append($0) }
        return String(decoding: output, as: UTF8.self)
    }

    public func encode(_ text: String) -> String { encode(Array(text.utf8)) }

    /// Decodes each escape once. `nil` for a percent sign without two hexadecimal digits.
    public func decodeBytes(_ bytes: some Sequence<UInt8>) -> [UInt8]? {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.underestimatedCount)
        var rest = bytes.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case ASCII.percent:
                guard let high = rest.next().flatMap(ASCII.hexValue), let low = rest.next().flatMap(ASCII.hexValue)
                else { return nil }
                output.append(high << 4 | low)
            case ASCII.plus where self == .form: output.append(ASCII.space)
            default: output.append(byte)
            }
        }
        return output
    }

    /// Decodes to text; `nil` also for bytes that are not UTF-8.
    public func decode(_ bytes: some Sequence<UInt8>) -> String? {
        decodeBytes(bytes).flatMap { String(validating: $0, as: UTF8.self) }
    }
}
