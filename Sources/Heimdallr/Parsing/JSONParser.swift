/// A strict JSON parser over bytes from a peer that may be hostile: it reads what RFC 8259 allows and a byte order mark
/// in front, and refuses two members of one name (readers differ on which counts), bad UTF-8, half surrogate
/// pairs and deep nesting. It never traps.
struct JSONParser {
    enum Fault: Error, Equatable {
        case malformed(at: Int)
        case tooDeep
        case duplicateName
    }

    static let maxDepth = 32

    private let bytes: [UInt8]
    private var position = 0

    static func parse(_ bytes: [UInt8]) throws(Fault) -> JSONValue {
        var parser = JSONParser(bytes: bytes)
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { parser.position = 3 }
        let value = try parser.value(depth: 0)
        parser.skipSpace()
        guard parser.position == bytes.count else { throw parser.malformed }
        return value
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
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
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        default: throw malformed
        }
    }

    private mutating func object(depth: Int) throws(Fault) -> JSONValue {
        position += 1
        var members: [String: JSONValue] = [:]
        skipSpace()
        if take(UInt8(ascii: "}")) { return .object(members) }
        while true {
            skipSpace()
            guard current == UInt8(ascii: "\"") else { throw malformed }
            let name = try string()
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw malformed }
            let member = try value(depth: depth + 1)
            guard members.updateValue(member, forKey: name) == nil else { throw .duplicateName }
            skipSpace()
            if take(UInt8(ascii: ",")) { continue }
            guard take(UInt8(ascii: "}")) else { throw malformed }
            return .object(members)
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
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        guard let number = Double(text), number.isFinite else { throw malformed }
        return .number(text)
    }

    private mutating func digits() throws(Fault) {
        let start = position
        while let byte = current, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { position += 1 }
        guard position > start else { throw malformed }
    }

    private mutating func string() throws(Fault) -> String {
        position += 1
        var text: [UInt8] = []
        while let byte = current {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let valid = String(validating: text, as: UTF8.self) else { throw malformed }
                return valid
            case UInt8(ascii: "\\"):
                text.append(contentsOf: try escape())
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
