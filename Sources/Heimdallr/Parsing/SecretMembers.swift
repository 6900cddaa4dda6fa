internal import Cryptography

/// A JSON object whose values may be secret: kept as its text, which is wiped with the last copy, and read when somebody
/// asks.
struct SecretMembers: Sendable {
    /// `nil`: it has no members.
    private let text: Secret?

    init(_ members: [String: JSONValue] = [:]) {
        guard !members.isEmpty else {
            text = nil
            return
        }
        var writer = SecretWriter(capacity: 256)
        Self.write(.object(members), to: &writer)
        text = Secret(writer.finish())
    }

    /// Some members of an object that has been read: no copies but this one are made.
    init(_ members: some Collection<JSONParser.Member>, of source: Span<UInt8>) {
        guard !members.isEmpty else {
            text = nil
            return
        }
        var writer = SecretWriter(capacity: 256)
        for member in members {
            writer.append(UInt8(ascii: writer.count == 0 ? "{" : ","))
            writer.append(source.extracting(member.source))
        }
        writer.append(UInt8(ascii: "}"))
        text = Secret(writer.finish())
    }

    var values: [String: JSONValue] {
        guard let value = text?.withSpan({ try? JSONParser.parse($0) }), case .object(let members) = value else {
            return [:]
        }
        return members
    }

    private static func write(_ value: JSONValue, to writer: inout SecretWriter) {
        switch value {
        case .null: writer.append("null")
        case .bool(let flag): writer.append(flag ? "true" : "false")
        case .number(let text): writer.append(text)
        case .string(let text): write(text, to: &writer)
        case .array(let elements):
            writer.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { writer.append(UInt8(ascii: ",")) }
                write(element, to: &writer)
            }
            writer.append(UInt8(ascii: "]"))
        case .object(let members):
            writer.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { writer.append(UInt8(ascii: ",")) }
                write(member.key, to: &writer)
                writer.append(UInt8(ascii: ":"))
                write(member.value, to: &writer)
            }
            writer.append(UInt8(ascii: "}"))
        }
    }

    /// RFC 8259 section 7.
    private static func write(_ text: String, to writer: inout SecretWriter) {
        let digits = Array("0123456789abcdef".utf8)
        writer.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                writer.append(UInt8(ascii: "\\"))
                writer.append(byte)
            case 0..<0x20:
                writer.append("\\u00")
                writer.append(digits[Int(byte >> 4)])
                writer.append(digits[Int(byte & 0x0F)])
            default: writer.append(byte)
            }
        }
        writer.append(UInt8(ascii: "\""))
    }
}

/// By what they say, whichever way it is written.
extension SecretMembers: Equatable {
    static func == (one: SecretMembers, other: SecretMembers) -> Bool {
        one.text == other.text || one.values == other.values
    }
}
