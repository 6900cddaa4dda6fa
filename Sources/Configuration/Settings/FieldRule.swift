import WireText

/// Answers besides 401 by which an upstream rejects a token.
public struct TokenRejection: Sendable, Equatable {
    /// Statuses from 400 to 499.
    public var statuses: [Int]
    /// Fields of the answer, each of which has to fit; empty for none.
    public var fields: [FieldRule] = []
}

/// Condition of an upstream on a field of the request.
public struct FieldRule: Sendable, Equatable {
    /// The field's name in lower case.
    public var name: String
    /// Accepted values. A final `*` stands for any text.
    public var patterns: [String]

    /// Whether a pattern accepts the value. A value with a comma may be a list (RFC 9110, section 5.3), of which a server
    /// may use another member. So only a pattern with a comma accepts it.
    public func accepts(_ value: Span<UInt8>) -> Bool {
        let isList = value.position(of: ASCII.comma) < value.count
        return patterns.contains { pattern in
            let bytes = pattern.utf8
            if isList, !bytes.contains(ASCII.comma) { return false }
            let isPrefix = bytes.last == UInt8(ascii: "*")
            return (isPrefix || value.count == bytes.count)
                && Self.begins(value, bytes, isPrefix ? bytes.count - 1 : bytes.count)
        }
    }

    private static func begins(_ value: Span<UInt8>, _ bytes: String.UTF8View, _ count: Int) -> Bool {
        guard value.count >= count else { return false }
        var index = 0
        for byte in bytes.prefix(count) {
            guard value[index] == byte else { return false }
            index += 1
        }
        return true
    }
}
