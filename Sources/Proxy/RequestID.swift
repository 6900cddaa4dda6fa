import HTTPMessage
import WireText

/// Name of a request in logs: the program's own (`X-Request-Id`, else `traceparent` of W3C Trace Context), else one of
/// the proxy. It is not added to the request.
enum RequestID {
    private static let maxLength = 128

    /// - Returns: the program's ID; `nil` for none that can stand in a log.
    static func read(_ fields: [Field], in bytes: Span<UInt8>) -> [UInt8]? {
        for field in fields where field.known == .requestID {
            let value = bytes[field.value]
            if isPlain(value) { return [UInt8](copying: value) }
        }
        for field in fields where field.known == .traceparent {
            let value = bytes[field.value]
            if TraceParent(value) != nil, isPlain(value) { return [UInt8](copying: value) }
        }
        return nil
    }

    /// The proxy's ID: the loop's prefix and a number.
    static func own(_ start: UInt32, _ number: UInt64) -> [UInt8] {
        var digits = [UInt8](repeating: UInt8(ascii: "-"), count: 8)
        for index in 0..<8 { digits[index] = ASCII.hexDigit(UInt8(start >> (28 - 4 * UInt32(index)) & 15)) }
        digits.append(UInt8(ascii: "-"))
        var shift: UInt64 = 60
        while shift > 0, number >> shift == 0 { shift -= 4 }
        while true {
            digits.append(ASCII.hexDigit(UInt8(number >> shift & 15)))
            guard shift > 0 else { return digits }
            shift -= 4
        }
    }

    private static func isPlain(_ value: Span<UInt8>) -> Bool {
        guard !value.isEmpty, value.count <= maxLength else { return false }
        for index in value.indices {
            switch value[index] {
            case let byte where ASCII.isAlphanumeric(byte): continue
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"), UInt8(ascii: ":"), UInt8(ascii: "/"), UInt8(ascii: "+"), UInt8(ascii: "="),
                UInt8(ascii: "@"), UInt8(ascii: "|"), UInt8(ascii: ","):
                continue
            default: return false
            }
        }
        return true
    }
}
