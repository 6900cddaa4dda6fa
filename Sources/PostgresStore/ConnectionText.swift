/// The text of a connection string, before libpq reads it: faults that libpq would not name without quoting a password,
/// or would read as something else.
enum ConnectionText {
    static let unescaped =
        "an `@` in user or password is not escaped: write %40 for it in a URI, or write `host=… user=… password=…`"

    /// - Parameter known: the options that libpq knows.
    /// - Returns: the fault, without any part of a password; `nil` if libpq may read the text.
    static func fault(of text: String, known: Set<String>) -> String? {
        guard let mark = text.firstRange(of: "://"), !text[..<mark.lowerBound].contains(where: { "= '".contains($0) })
        else {
            return unknownKeyword(text, known)
        }
        let scheme = text[..<mark.lowerBound]
        guard ["postgresql", "postgres"].contains(scheme) else {
            let isWord =
                scheme.utf8.count <= 40 && scheme.utf8.allSatisfy { isLetter($0) || "0123456789+.:-".utf8.contains($0) }
            return "a URI has to begin with `postgresql://`\(isWord ? ", not with `\(scheme)://`" : "")"
        }
        return uriFault(text[mark.upperBound...], known)
    }

    /// libpq takes the first `@` as the end of user and password, unless a `/` precedes it. The rest of a password would
    /// become the host's name.
    private static func uriFault(_ body: Substring, _ known: Set<String>) -> String? {
        let end = body.firstIndex { "@/".contains($0) }
        let rest = end.map { body[$0] == "@" ? body[body.index(after: $0)...] : body } ?? body
        let query = rest.firstIndex(of: "?")
        guard !rest[..<(query ?? rest.endIndex)].contains("@") else { return unescaped }
        // Such a query may be the rest of a password, too.
        guard let query, !rest[query...].contains("@") else { return nil }
        for parameter in rest[query...].dropFirst().split(separator: "&") {
            let name = String(parameter.prefix { $0 != "=" })
            // libpq takes `ssl=true` from other drivers.
            guard !known.contains(name), name != "ssl", isWord(name) else { continue }
            return "libpq does not know the option `\(name)`: leave it out"
        }
        return nil
    }

    /// Reads `keyword = value` pairs. https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING
    private static func unknownKeyword(_ text: String, _ known: Set<String>) -> String? {
        var rest = text[...].drop { $0.isWhitespace }
        var mayBePassword = false
        while !rest.isEmpty {
            let name = String(rest.prefix { $0 != "=" && !$0.isWhitespace })
            rest = rest.dropFirst(name.count).drop { $0.isWhitespace }
            // Without `=`, libpq reports the fault.
            guard rest.first == "=" else { return nil }
            guard known.contains(name) else {
                guard !mayBePassword else {
                    return "`password`: a value with spaces needs single quotes, '…', with \\' and \\\\ inside"
                }
                return isWord(name) ? "libpq does not know the option `\(name)`: leave it out" : nil
            }
            rest = rest.dropFirst().drop { $0.isWhitespace }
            let isQuoted = rest.first == "'"
            if isQuoted { rest = rest.dropFirst() }
            while let next = rest.first, isQuoted ? next != "'" : !next.isWhitespace {
                rest = rest.dropFirst(next == "\\" ? 2 : 1)
            }
            if isQuoted { rest = rest.dropFirst() }
            rest = rest.drop { $0.isWhitespace }
            mayBePassword = name.hasSuffix("password") && !isQuoted
        }
        return nil
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

    /// Whether the name can be shown: a short word, as the options of other drivers are.
    private static func isWord(_ name: String) -> Bool {
        (1...40).contains(name.utf8.count)
            && name.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || $0 == 0x5F || $0 == 0x2D }
    }
}
