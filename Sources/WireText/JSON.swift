/// A JSON value to write (RFC 8259). Members stay in the given order. Parsed JSON is a `JSONValue`.
public enum JSON: Sendable, Equatable {
    case null
    case bool(Bool)
    case string(String)
    case number(Int)
    /// A number with at most three decimal places; `null` for infinite, NaN and huge values.
    case decimal(Double)
    /// A number in its final spelling.
    case literal(String)
    case array([JSON])
    case object([Member])

    public struct Member: Sendable, Equatable {
        public var name: String
        public var value: JSON

        public init(_ name: String, _ value: JSON) {
            self.name = name
            self.value = value
        }
    }

    /// `nil` becomes `null`.
    public init(_ text: String?) { self = text.map { .string($0) } ?? .null }

    public init(_ texts: [String]) { self = .array(texts.map { .string($0) }) }

    /// Writes seconds; `nil` becomes `null`.
    public init(_ duration: Duration?) { self = duration.map { .decimal($0 / .seconds(1)) } ?? .null }

    /// Sorts members by name.
    public init(_ value: JSONValue) {
        switch value {
        case .null: self = .null
        case .bool(let flag): self = .bool(flag)
        case .number(let text): self = .literal(text)
        case .string(let text): self = .string(text)
        case .array(let elements): self = .array(elements.map { JSON($0) })
        case .object(let members):
            self = .object(members.sorted { $0.key < $1.key }.map { Member($0.key, JSON($0.value)) })
        }
    }

    public enum Layout: Sendable {
        /// For programs: no white space.
        case compact
        /// One line, with a space after each comma and colon.
        case line
        /// For people: lines indented by two spaces for each level, and a line feed at the very end.
        case document
    }

    /// - Parameter output: receives the text byte by byte, so that secrets need no copy.
    public func write(_ layout: Layout, escaping: JSONEscaping = .page, to output: (UInt8) -> Void) {
        write(layout, escaping, depth: 0, output)
        if layout == .document { output(ASCII.lf) }
    }

    public func text(_ layout: Layout, escaping: JSONEscaping = .page) -> String {
        var bytes: [UInt8] = []
        write(layout, escaping: escaping) { bytes.append($0) }
        return String(decoding: bytes, as: UTF8.self)
    }

    public var document: String { text(.document) }
    public var line: String { text(.line) }

    private func write(_ layout: Layout, _ escaping: JSONEscaping, depth: Int, _ output: (UInt8) -> Void) {
        switch self {
        case .null: Self.write("null", output)
        case .bool(let value): Self.write(value ? "true" : "false", output)
        case .string(let value): escaping.quote(value, to: output)
        case .number(let value): Self.write(String(value), output)
        case .decimal(let value): Self.write(DecimalText.thousandths(value), output)
        case .literal(let text): Self.write(text, output)
        case .array(let values):
            Self.write(values, "[", "]", layout, depth, output) { value, depth in
                value.write(layout, escaping, depth: depth, output)
            }
        case .object(let members):
            Self.write(members, "{", "}", layout, depth, output) { member, depth in
                escaping.quote(member.name, to: output)
                Self.write(layout == .compact ? ":" : ": ", output)
                member.value.write(layout, escaping, depth: depth, output)
            }
        }
    }

    private static func write<Element>(
        _ elements: [Element], _ open: String, _ close: String, _ layout: Layout, _ depth: Int,
        _ output: (UInt8) -> Void, _ element: (Element, Int) -> Void
    ) {
        func indent(_ depth: Int) {
            guard layout == .document, !elements.isEmpty else { return }
            output(ASCII.lf)
            for _ in 0..<(2 * depth) { output(ASCII.space) }
        }
        write(open, output)
        for (index, value) in elements.enumerated() {
            if index > 0 { write(layout == .line ? ", " : ",", output) }
            indent(depth + 1)
            element(value, depth + 1)
        }
        indent(depth)
        write(close, output)
    }

    private static func write(_ text: String, _ output: (UInt8) -> Void) {
        for byte in text.utf8 { output(byte) }
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int) { self = .number(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension JSON: ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    /// Keeps the order of the members.
    public init(dictionaryLiteral members: (String, JSON)...) { self = .object(members.map { Member($0, $1) }) }
}
