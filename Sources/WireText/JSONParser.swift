/// A strict JSON parser for bytes from a hostile peer. It accepts RFC 8259 with an optional byte order mark. It refuses
/// repeated member names (readers differ on which counts), invalid UTF-8, half surrogate pairs, numbers too large for
/// `Double`, and nesting deeper than `maxDepth`. It never traps, and its time and memory grow linearly with the bytes.
public struct JSONParser: ~Escapable {
    public enum Fault: Error, Equatable {
        case malformed(at: Int)
        case tooDeep
        case duplicateName
    }

    public static let maxDepth = 32

    private let bytes: Span<UInt8>
    private var position = 0
    /// Whether the parser only validates, and copies no string except names.
    private var isDry = false

    public static func parse(_ bytes: [UInt8]) throws(Fault) -> JSONValue { try parse(bytes.span) }

    public static func parse(_ bytes: Span<UInt8>) throws(Fault) -> JSONValue {
        var parser = JSONParser(bytes)
        let value = try parser.value(depth: 0)
        try parser.end()
        return value
    }

    /// A member of an object whose strings may be secrets: holds their positions, not their text.
    public struct Member: Sendable, Equatable {
        public enum Value: Sendable, Equatable {
            /// The range between the quotes, for `decode(string:in:to:)`.
            case string(Range<Int>)
            case number(String)
            case null
            /// Any other value, and the range of its text.
            case other(Range<Int>)
        }

        public var value: Value
        /// Name, colon and value as written.
        public var source: Range<Int>
    }

    /// The members of an object; `nil` for any other value. Copies no string except names.
    public static func members(_ bytes: Span<UInt8>) throws(Fault) -> [String: Member]? {
        var parser = JSONParser(bytes)
        parser.skipSpace()
        guard parser.current == ASCII.leftBrace else {
            _ = try parser.value(depth: 0)
            try parser.end()
            return nil
        }
        parser.isDry = true
        var members: [String: Member] = [:]
        try parser.object { parser, name, start throws(Fault) in
            let value = try parser.member()
            let member = Member(value: value, source: start..<parser.position)
            return members.updateValue(member, forKey: name) == nil
        }
        try parser.end()
        return members
    }

    /// Decodes a member's string in pieces of valid UTF-8.
    public static func decode(string range: Range<Int>, in bytes: Span<UInt8>, to output: (Span<UInt8>) -> Void) {
        var parser = JSONParser(bytes)
        parser.position = range.lowerBound - 1
        // The string was parsed before, so it is well-formed.
        try? parser.characters(output)
    }

    private mutating func member() throws(Fault) -> Member.Value {
        guard let byte = current else { throw malformed }
        let start = position
        switch byte {
        case ASCII.quote:
            try characters { _ in }
            return .string(start + 1..<position - 1)
        case UInt8(ascii: "n"):
            _ = try value(depth: 1)
            return .null
        case ASCII.hyphen, ASCII.zero...ASCII.nine:
            guard case .number(let text) = try value(depth: 1) else { throw malformed }
            return .number(text)
        default:
            _ = try value(depth: 1)
            return .other(start..<position)
        }
    }

    @_lifetime(copy bytes)
    private init(_ bytes: Span<UInt8>) {
        self.bytes = bytes
        if bytes.count >= 3, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF { position = 3 }
    }

    private mutating func end() throws(Fault) {
        skipSpace()
        guard position == bytes.count else { throw malformed }
    }

    private var malformed: Fault { .malformed(at: position) }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = current, ASCII.isWhitespace(byte) { position += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    private mutating func value(depth: Int) throws(Fault) -> JSONValue {
        guard depth <= Self.maxDepth else { throw .tooDeep }
        skipSpace()
        guard let byte = current else { throw malformed }
        switch byte {
        case ASCII.leftBrace: return try object(depth: depth)
        case ASCII.leftBracket: return try array(depth: depth)
        case ASCII.quote:
            if isDry {
                try characters { _ in }
                return .null
            }
            return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case ASCII.hyphen, ASCII.zero...ASCII.nine: return try number()
        default: throw malformed
        }
    }

    private mutating func object(depth: Int) throws(Fault) -> JSONValue {
        var members: [String: JSONValue] = [:]
        try object { parser, name, _ throws(Fault) in
            members.updateValue(try parser.value(depth: depth + 1), forKey: name) == nil
        }
        return .object(members)
    }

    /// - Parameter member: reads a value, given its name and the name's position; returns whether the name is new.
    private mutating func object(
        _ member: (inout JSONParser, String, Int) throws(Fault) -> Bool
    ) throws(Fault) {
        position += 1
        skipSpace()
        if take(ASCII.rightBrace) { return }
        while true {
            skipSpace()
            let start = position
            guard current == ASCII.quote else { throw malformed }
            let name = try string()
            skipSpace()
            guard take(ASCII.colon) else { throw malformed }
            skipSpace()
            guard try member(&self, name, start) else { throw .duplicateName }
            skipSpace()
            if take(ASCII.comma) { continue }
            guard take(ASCII.rightBrace) else { throw malformed }
            return
        }
    }

    private mutating func array(depth: Int) throws(Fault) -> JSONValue {
        position += 1
        var elements: [JSONValue] = []
        skipSpace()
        if take(ASCII.rightBracket) { return .array(elements) }
        while true {
            elements.append(try value(depth: depth + 1))
            skipSpace()
            if take(ASCII.comma) { continue }
            guard take(ASCII.rightBracket) else { throw malformed }
            return .array(elements)
        }
    }

    private mutating func literal(_ text: StaticString, _ value: JSONValue) throws(Fault) -> JSONValue {
        for byte in Array(text.description.utf8) {
            guard take(byte) else { throw malformed }
        }
        return value
    }

    private mutating func number() throws(Fault) -> JSONValue {
        let start = position
        _ = take(ASCII.hyphen)
        if !take(ASCII.zero) { try digits() }
        if take(ASCII.dot) { try digits() }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            if !take(ASCII.plus) { _ = take(ASCII.hyphen) }
            try digits()
        }
        let text = bytes.extracting(start..<position).text
        guard let number = Double(text), number.isFinite else { throw malformed }
        return .number(text)
    }

    private mutating func digits() throws(Fault) {
        let start = position
        while let byte = current, ASCII.isDigit(byte) { position += 1 }
        guard position > start else { throw malformed }
    }

    private mutating func string() throws(Fault) -> String {
        var text: [UInt8] = []
        try characters { text.append(copying: $0) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Reads a string and outputs its text in pieces of valid UTF-8.
    private mutating func characters(_ output: (Span<UInt8>) -> Void) throws(Fault) {
        position += 1
        var start = position
        while let byte = current {
            switch byte {
            case ASCII.quote:
                try plain(start, output)
                position += 1
                return
            case ASCII.backslash:
                try plain(start, output)
                position += 1
                let character = try escape()
                output(character.span)
                start = position
            case 0..<0x20:
                throw malformed
            default:
                position += 1
            }
        }
        throw malformed
    }

    /// Outputs the unescaped text from `start` on. No character continues after an escape, so each piece must be valid
    /// UTF-8.
    private func plain(_ start: Int, _ output: (Span<UInt8>) -> Void) throws(Fault) {
        let piece = bytes.extracting(start..<position)
        guard (try? UTF8Span(validating: piece)) != nil else { throw malformed }
        if !piece.isEmpty { output(piece) }
    }

    private mutating func escape() throws(Fault) -> [UInt8] {
        guard let byte = current else { throw malformed }
        position += 1
        switch byte {
        case ASCII.quote, ASCII.backslash, ASCII.slash: return [byte]
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "f"): return [0x0C]
        case UInt8(ascii: "n"): return [ASCII.lf]
        case UInt8(ascii: "r"): return [ASCII.cr]
        case UInt8(ascii: "t"): return [ASCII.tab]
        case UInt8(ascii: "u"): return try unicodeEscape()
        default: throw malformed
        }
    }

    private mutating func unicodeEscape() throws(Fault) -> [UInt8] {
        var code = try fourHexDigits()
        if (0xD800..<0xDC00).contains(code) {
            guard take(ASCII.backslash), take(UInt8(ascii: "u")) else { throw malformed }
            let low = try fourHexDigits()
            guard (0xDC00..<0xE000).contains(low) else { throw malformed }
            code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else { throw malformed }
        return Array(String(Character(scalar)).utf8)
    }

    private mutating func fourHexDigits() throws(Fault) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = current.flatMap(ASCII.hexValue) else { throw malformed }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
    }
}
