internal import Cryptography

/// A strict JSON parser over bytes from a peer that may be hostile: it reads what RFC 8259 allows and a byte order mark
/// in front, and refuses two members of one name (readers differ on which counts), bad UTF-8, half surrogate
/// pairs and deep nesting. It never traps.
struct JSONParser: ~Escapable {
    enum Fault: Error, Equatable {
        case malformed(at: Int)
        case tooDeep
        case duplicateName
    }

    static let maxDepth = 32

    private let bytes: Span<UInt8>
    private var position = 0
    /// Only looks whether all is well: makes no copy of any string but of names.
    private var isDry = false

    static func parse(_ bytes: [UInt8]) throws(Fault) -> JSONValue { try parse(bytes.span) }

    static func parse(_ bytes: Span<UInt8>) throws(Fault) -> JSONValue {
        var parser = JSONParser(bytes)
        let value = try parser.value(depth: 0)
        try parser.end()
        return value
    }

    /// A member of an object that holds secrets.
    struct Member {
        enum Value {
            case string(Secret)
            case number(String)
            case null
            /// Anything else; it is in `source`.
            case other
        }

        var value: Value
        /// Name, colon and value as they were written.
        var source: Range<Int>
    }

    /// The members of an object; `nil` for any other value.
    static func members(_ bytes: Span<UInt8>) throws(Fault) -> [String: Member]? {
        var parser = JSONParser(bytes)
        parser.skipSpace()
        guard parser.current == UInt8(ascii: "{") else {
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

    private mutating func member() throws(Fault) -> Member.Value {
        guard let byte = current else { throw malformed }
        switch byte {
        case UInt8(ascii: "\""): return .string(Secret(try characters()))
        case UInt8(ascii: "n"):
            _ = try value(depth: 1)
            return .null
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            guard case .number(let text) = try value(depth: 1) else { throw malformed }
            return .number(text)
        default:
            _ = try value(depth: 1)
            return .other
        }
    }

    @_lifetime(copy bytes)
    private init(_ bytes: Span<UInt8>) {
        self.bytes = bytes
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        if bytes.count >= 3, bytes[0] == mark[0], bytes[1] == mark[1], bytes[2] == mark[2] { position = 3 }
    }

    private mutating func end() throws(Fault) {
        skipSpace()
        guard position == bytes.count else { throw malformed }
    }

    private var malformed: Fault { .malformed(at: position) }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = current, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { position += 1 }
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
        case UInt8(ascii: "{"): return try object(depth: depth)
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "\""):
            if isDry {
                _ = try characters()
                return .null
            }
            return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
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

    /// - Parameter member: reads a value, whose name and its place it is told; answers whether the name is new.
    private mutating func object(
        _ member: (inout JSONParser, String, Int) throws(Fault) -> Bool
    ) throws(Fault) {
        position += 1
        skipSpace()
        if take(UInt8(ascii: "}")) { return }
        while true {
            skipSpace()
            let start = position
            guard current == UInt8(ascii: "\"") else { throw malformed }
            let name = try string()
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw malformed }
            skipSpace()
            guard try member(&self, name, start) else { throw .duplicateName }
            skipSpace()
            if take(UInt8(ascii: ",")) { continue }
            guard take(UInt8(ascii: "}")) else { throw malformed }
            return
        }
    }

    private mutating func array(depth: Int) throws(Fault) -> JSONValue {
        position += 1
        var elements: [JSONValue] = []
        skipSpace()
        if take(UInt8(ascii: "]")) { return .array(elements) }
        while true {
            elements.append(try value(depth: depth + 1))
            skipSpace()
            if take(UInt8(ascii: ",")) { continue }
            guard take(UInt8(ascii: "]")) else { throw malformed }
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
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")) { try digits() }
        if take(UInt8(ascii: ".")) { try digits() }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            try digits()
        }
        var digits: [UInt8] = []
        for index in start..<position { digits.append(bytes[index]) }
        let text = String(decoding: digits, as: UTF8.self)
        guard let number = Double(text), number.isFinite else { throw malformed }
        return .number(text)
    }

    private mutating func digits() throws(Fault) {
        let start = position
        while let byte = current, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { position += 1 }
        guard position > start else { throw malformed }
    }

    private mutating func string() throws(Fault) -> String { Secret(try characters()).revealed }

    /// What a string stands for, in valid UTF-8.
    private mutating func characters() throws(Fault) -> SecretBytes {
        position += 1
        var text = SecretWriter()
        while let byte = current {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                let isValid = text.withSpan { (try? UTF8Span(validating: $0)) != nil }
                guard isValid else { throw malformed }
                return text.finish()
            case UInt8(ascii: "\\"):
                for byte in try escape() { text.append(byte) }
            case 0..<0x20:
                throw malformed
            default:
                text.append(byte)
            }
        }
        throw malformed
    }

    private mutating func escape() throws(Fault) -> [UInt8] {
        guard let byte = current else { throw malformed }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "f"): return [0x0C]
        case UInt8(ascii: "n"): return [0x0A]
        case UInt8(ascii: "r"): return [0x0D]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "u"): return try unicodeEscape()
        default: throw malformed
        }
    }

    private mutating func unicodeEscape() throws(Fault) -> [UInt8] {
        var code = try fourHexDigits()
        if (0xD800..<0xDC00).contains(code) {
            guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else { throw malformed }
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
            guard let byte = current, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw malformed
            }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
    }
}
