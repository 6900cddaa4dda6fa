import HTTPMessage
import WireText

/// Name of a request in logs: the program's `X-Request-Id`, else its `traceparent` (W3C Trace Context), else an ID made
/// by the proxy. The proxy does not add this ID to the request.
enum RequestID {
    private static let maxLength = 128

    /// - Returns: the program's ID; `nil` for none, and for IDs that are too long, unsafe in a log, or malformed.
    static func read(_ fields: [Field], in bytes: Span<UInt8>) -> [UInt8]? {
        for field in fields where field.known == .requestID && isPlain(bytes[field.value]) {
            return [UInt8](copying: bytes[field.value])
        }
        for field in fields where field.known == .traceparent && isPlain(bytes[field.value]) {
            if TraceParent(bytes[field.value]) != nil { return [UInt8](copying: bytes[field.value]) }
        }
        return nil
    }

    /// Whether `read` has a field to look at.
    static func mayRead(_ head: borrowing RequestHead) -> Bool {
        head.index(of: .requestID) != nil || head.index(of: .traceparent) != nil
    }

    private static func isPlain(_ value: Span<UInt8>) -> Bool {
        guard !value.isEmpty, value.count <= maxLength else { return false }
        return value.indices.allSatisfy { ASCII.isAlphanumeric(value[$0]) || punctuation.contains(value[$0]) }
    }

    private static let punctuation = Array("-._~:/+=@|,".utf8)
}

/// The IDs that one loop makes: a random prefix, and a number.
struct RequestIDs {
    private let prefix = UInt32.random(in: .min ... .max).bigEndianBytes.hexadecimal + [UInt8(ascii: "-")]
    private var count: UInt64 = 0

    mutating func next() -> [UInt8] { text(of: nextNumber()) }

    /// Takes the number of an ID whose text may never be needed.
    mutating func nextNumber() -> UInt64 {
        count &+= 1
        return count
    }

    func text(of number: UInt64) -> [UInt8] { prefix + String(number, radix: 16).utf8 }
}
