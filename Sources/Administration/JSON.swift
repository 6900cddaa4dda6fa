/// JSON (RFC 8259) whose members stay in the order they were given, for answers that people read.
enum JSON: Sendable, Equatable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    case null
    case bool(Bool)
    case string(String)
    case number(Int)
    /// With three digits behind the point.
    case decimal(Double)
    case array([JSON])
    case object([Member])

    struct Member: Sendable, Equatable {
        var name: String
        var value: JSON

        init(_ name: String, _ value: JSON) {
            self.name = name
            self.value = value
        }
    }

    init(stringLiteral value: String) { self = .string(value) }
    init(integerLiteral value: Int) { self = .number(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }

    init(_ text: String?) { self = text.map { .string($0) } ?? .null }
    /// In seconds.
    init(_ duration: Duration?) { self = duration.map { .decimal($0.inSeconds) } ?? .null }

    /// Two spaces an indentation step, and a line feed at the very end.
    var document: String { text(indentation: "") + "\n" }

    /// Without any line feed.
    var line: String { text(indentation: nil) }

    private func text(indentation: String?) -> String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .string(let value): Self.quoted(value)
        case .number(let value): String(value)
        case .decimal(let value): DecimalText.thousandths(value)
        case .array(let values):
            Self.joined(values, "[", "]", indentation) { $0.text(indentation: $1) }
        case .object(let members):
            Self.joined(members, "{", "}", indentation) { "\(Self.quoted($0.name)): \($0.value.text(indentation: $1))" }
        }
    }

    private static func joined<Part>(
        _ parts: [Part], _ open: String, _ close: String, _ indentation: String?, _ text: (Part, String?) -> String
    ) -> String {
        guard !parts.isEmpty else { return open + close }
        guard let indentation else { return open + parts.map { text($0, nil) }.joined(separator: ", ") + close }
        let inner = indentation + "  "
        return open + "\n" + parts.map { inner + text($0, inner) }.joined(separator: ",\n") + "\n\(indentation)" + close
    }

    private static func quoted(_ value: String) -> String {
        var text = "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            // Line and paragraph separators, and `<`, end a script or a string where the text is put into a page.
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "<", "\u{2028}", "\u{2029}":
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }
}

/// Numbers as text, without the C library's locale.
enum DecimalText {
    /// With at most three digits behind the point.
    static func thousandths(_ value: Double) -> String {
        guard value.isFinite, value.magnitude < 1e15 else { return "null" }
        let scaled = Int((value * 1000).rounded())
        let (whole, rest) = scaled.magnitude.quotientAndRemainder(dividingBy: 1000)
        let sign = scaled < 0 ? "-" : ""
        guard rest > 0 else { return sign + String(whole) }
        var digits = String(rest)
        digits = String(repeating: "0", count: 3 - digits.count) + digits
        while digits.hasSuffix("0") { digits.removeLast() }
        return "\(sign)\(whole).\(digits)"
    }
}
