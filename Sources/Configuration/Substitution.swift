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

    /// The name, when the text is one `${NAME}` and nothing else.
    static func soleName(in text: String) -> String? {
        guard text.hasPrefix("${"), text.hasSuffix("}") else { return nil }
        let name = text.dropFirst(2).dropLast()
        return isName(name) ? String(name) : nil
    }

    static func isName(_ name: some StringProtocol) -> Bool {
        guard let first = name.utf8.first, !(0x30...0x39).contains(first) else { return false }
        return name.utf8.allSatisfy { $0 == 0x5F || Grammar.isAlphanumeric($0) }
    }
}
