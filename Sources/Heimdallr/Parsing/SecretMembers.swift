internal import Cryptography
internal import WireText

/// A JSON object with secret values. Stored as text that is wiped with the last copy, and parsed on demand.
struct SecretMembers: Sendable {
    /// The JSON text; `nil`: the object has no members.
    private let text: Secret?

    init(_ members: [String: JSONValue] = [:]) {
        guard !members.isEmpty else {
            text = nil
            return
        }
        var writer = SecretWriter(capacity: 256)
        JSON(.object(members)).write(.compact, escaping: .required) { writer.append($0) }
        text = Secret(writer.finish())
    }

    /// Copies some members of a parsed object. Makes no other copies of their values.
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
}

/// Compares the content, not the spelling.
extension SecretMembers: Equatable {
    static func == (one: SecretMembers, other: SecretMembers) -> Bool {
        one.text == other.text || one.values == other.values
    }
}
