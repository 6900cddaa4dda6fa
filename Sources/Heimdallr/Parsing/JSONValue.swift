/// One value of a JSON text, RFC 8259.
public enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    /// As it was written, so that nothing is lost: `Double(text)` is finite.
    case number(String)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    public var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    public subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }
}
