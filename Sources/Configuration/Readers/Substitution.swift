import WireText

/// `${NAME}` in a value is taken from the environment; `$${` stands for `${`.
enum Substitution {
    /// The text with every name replaced. The error says which name is at fault.
    static func apply(to text: String, _ environment: [String: String]) throws(Misfit) -> String {
        guard text.contains("${") else { return text }
        var result = ""
        var rest = text[...]
        while let dollar = rest.firstIndex(of: "$") {
            result += rest[..<dollar]
            rest = rest[dollar...]
            if rest.hasPrefix("$${") {
                result += "${"
                rest = rest.dropFirst(3)
            } else if rest.hasPrefix("${") {
                guard let end = rest.firstIndex(of: "}"), isName(rest[..<end].dropFirst(2)) else {
                    throw Misfit("write ${NAME} for an environment variable, or $${ for a literal ${")
                }
                let name = String(rest[..<end].dropFirst(2))
                guard let value = environment[name] else {
                    throw Misfit(
                        "the environment variable \(name) is not set: set it, or write $${ for a literal ${",
                        quotes: false)
                }
                result += value
                rest = rest[end...].dropFirst()
            } else {
                result += "$"
                rest = rest.dropFirst()
            }
        }
        return result + rest
    }

    /// Every name that stands in the text, to be replaced.
    static func names(in text: String) -> Set<String> {
        var names: Set<String> = []
        var rest = text[...]
        while let dollar = rest.firstIndex(of: "$") {
            rest = rest[dollar...]
            if rest.hasPrefix("$${") {
                rest = rest.dropFirst(3)
            } else if rest.hasPrefix("${"), let end = rest.firstIndex(of: "}"), isName(rest[..<end].dropFirst(2)) {
                names.insert(String(rest[..<end].dropFirst(2)))
                rest = rest[end...].dropFirst()
            } else {
                rest = rest.dropFirst()
            }
        }
        return names
    }

    /// A name that somebody wrote as shells have it, `$NAME`, and that nothing replaces; `nil` where there is none.
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

    /// The name, when the text is one `${NAME}` and nothing else.
    static func soleName(in text: String) -> String? {
        guard text.hasPrefix("${"), text.hasSuffix("}") else { return nil }
        let name = text.dropFirst(2).dropLast()
        return isName(name) ? String(name) : nil
    }

    static let nameKind = ValueKind.text(matching: "^[A-Za-z_][A-Za-z0-9_]*$")

    static func isName(_ name: some StringProtocol) -> Bool {
        guard let first = name.utf8.first, !ASCII.isDigit(first) else { return false }
        return name.utf8.allSatisfy { $0 == 0x5F || ASCII.isAlphanumeric($0) }
    }
}
