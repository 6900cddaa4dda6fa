import WireText

/// Replaces `${NAME}` in a value by the value of the environment variable. `$${` gives a literal `${`.
enum Substitution {
    private enum Piece {
        case text(Substring)
        case name(String)
        /// A `${` that no valid name with a closing brace follows.
        case malformed
    }

    private static func pieces(of text: String) -> [Piece] {
        var pieces: [Piece] = []
        var rest = text[...]
        while let dollar = rest.firstIndex(of: "$") {
            pieces.append(.text(rest[..<dollar]))
            rest = rest[dollar...]
            if rest.hasPrefix("$${") {
                pieces.append(.text("${"))
                rest = rest.dropFirst(3)
            } else if rest.hasPrefix("${"), let end = rest.firstIndex(of: "}"), isName(rest[..<end].dropFirst(2)) {
                pieces.append(.name(String(rest[..<end].dropFirst(2))))
                rest = rest[end...].dropFirst()
            } else {
                pieces.append(rest.hasPrefix("${") ? .malformed : .text("$"))
                rest = rest.dropFirst()
            }
        }
        return pieces + [.text(rest)]
    }

    /// Replaces all names. The error describes the first fault.
    static func apply(to text: String, _ environment: [String: String]) throws(BadValue) -> String {
        var result = ""
        for piece in pieces(of: text) {
            switch piece {
            case .text(let text): result += text
            case .name(let name):
                guard let value = environment[name] else {
                    throw BadValue(
                        "the environment variable \(name) is not set: set it, or write $${ for a literal ${",
                        quotes: false)
                }
                result += value
            case .malformed: throw BadValue("write ${NAME} for an environment variable, or $${ for a literal ${")
            }
        }
        return result
    }

    /// Returns the first name without a variable; `nil` if all are set, or the text has another fault.
    static func missingName(in text: String, _ environment: [String: String]) -> String? {
        var missing: String?
        for piece in pieces(of: text) {
            switch piece {
            case .text: continue
            case .name(let name): if environment[name] == nil { missing = missing ?? name }
            case .malformed: return nil
            }
        }
        return missing
    }

    static func names(in text: String) -> Set<String> {
        Set(pieces(of: text).compactMap { if case .name(let name) = $0 { name } else { nil } })
    }

    /// Returns the first name in the form `$NAME`, which `apply` does not replace; `nil` if there is none.
    static func bareName(in text: String) -> String? {
        var rest = text[...]
        while let dollar = rest.firstIndex(of: "$") {
            rest = rest[dollar...].dropFirst()
            if rest.hasPrefix("$") {
                rest = rest.drop { $0 == "$" }
                continue
            }
            let name = rest.prefix { $0 == "_" || $0.isASCII && ($0.isLetter || $0.isNumber) }
            if isName(name) { return String(name) }
        }
        return nil
    }

    /// Returns the name if the whole text is a single `${NAME}`.
    static func soleName(in text: String) -> String? {
        guard text.hasPrefix("${"), text.hasSuffix("}") else { return nil }
        let name = text.dropFirst(2).dropLast()
        return isName(name) ? String(name) : nil
    }

    static let namePattern = "^[A-Za-z_][A-Za-z0-9_]*$"

    static func isName(_ name: some StringProtocol) -> Bool {
        guard let first = name.utf8.first, !ASCII.isDigit(first) else { return false }
        return name.utf8.allSatisfy { $0 == 0x5F || ASCII.isAlphanumeric($0) }
    }
}
