/// One value of a JSON text: RFC 8259 section 3.
public enum JSONValue: Sendable, Hashable {
    /// `null`
    case null
    /// `true` or `false`
    case bool(Bool)
    /// A number as written, so that no digit is lost. `Double(text)` gives its value, which is finite.
    case number(String)
    /// A string without escapes.
    case string(String)
    /// An array's values, in their order.
    case array([JSONValue])
    /// An object's members by name.
    case object([String: JSONValue])

    /// The text of a string; `nil` for any other value.
    public var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The strings of an array, without its other values; `nil` for any other value.
    package var texts: [String]? {
        if case .array(let elements) = self { elements.compactMap(\.string) } else { nil }
    }

    /// The object without its members that are `null`, as many servers write absent ones; any other value unchanged.
    public var withoutNulls: JSONValue {
        if case .object(let members) = self { .object(members.filter { $0.value != .null }) } else { self }
    }

    /// The member of this name; `nil` when the object has none, and for any other value.
    public subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }
}
