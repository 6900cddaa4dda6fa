/// JSON (RFC 8259) whose members stay in the order they were given, for answers that people read.
enum JSON: Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    case string(String)
    case number(Int)
    case boolean(Bool)
    case array([JSON])
    case object([(String, JSON)])

    init(stringLiteral value: String) { self = .string(value) }
    init(integerLiteral value: Int) { self = .number(value) }

    /// Two spaces an indentation step, and a line feed at the very end.
    var document: String { text() + "\n" }

    private func text(indentation: String = "") -> String {
        switch self {
        case .string(let value): return Self.quoted(value)
        case .number(let value): return String(value)
        case .boolean(let value): return String(value)
        case .array(let values):
            return "[" + values.map { $0.text(indentation: indentation) }.joined(separator: ", ") + "]"
        case .object(let members):
            guard !members.isEmpty else { return "{}" }
            let inner = indentation + "  "
            let lines = members.map { "\(inner)\(Self.quoted($0.0)): \($0.1.text(indentation: inner))" }
            return "{\n" + lines.joined(separator: ",\n") + "\n\(indentation)}"
        }
    }

    private static func quoted(_ value: String) -> String {
        var text = "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}":
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }
}
