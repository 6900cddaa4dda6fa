/// Where a link may lead.
enum HTMLAddress {
    /// A path, a query or a fragment of this site, or an address of http or https; not one that only looks like a path
    /// and is another host's (`//host`, `/\host`).
    static func isHarmless(_ address: String) -> Bool {
        var scheme = ""
        scheme: for scalar in address.unicodeScalars {
            switch scalar {
            case ":": return ["http", "https"].contains(scheme.lowercased())
            case "/", "?", "#": break scheme
            // Browsers read it as a slash, leave out line ends, and cut what stands in front.
            case "\\", "\u{0}"..."\u{20}", "\u{7F}": return false
            default: scheme.unicodeScalars.append(scalar)
            }
        }
        let bytes = address.utf8
        return
            !(bytes.first == UInt8(ascii: "/") && bytes.dropFirst().first.map { "/\\\t\r\n".utf8.contains($0) } == true)
    }
}
