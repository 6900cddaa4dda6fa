/// Rules for the targets of links.
enum HTMLAddress {
    /// Whether the address is a path, a query or a fragment of this site, or an http or https address. `//host` and
    /// `/\host` look like paths but name other hosts, so they are not harmless.
    static func isHarmless(_ address: String) -> Bool {
        var scheme = ""
        scheme: for scalar in address.unicodeScalars {
            switch scalar {
            case ":": return ["http", "https"].contains(scheme.lowercased())
            case "/", "?", "#": break scheme
            // Browsers read a backslash as a slash, drop tabs and line ends, and trim leading blanks and controls.
            case "\\", "\u{0}"..."\u{20}", "\u{7F}": return false
            default: scheme.unicodeScalars.append(scalar)
            }
        }
        let bytes = address.utf8
        return
            !(bytes.first == UInt8(ascii: "/") && bytes.dropFirst().first.map { "/\\\t\r\n".utf8.contains($0) } == true)
    }
}
