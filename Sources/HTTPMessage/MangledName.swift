import WireText

/// Field names as servers see them that turn fields into variables. CGI, WSGI and PHP replace all characters but letters
/// and digits by `_`, and the last field of such a name counts. So `Mcp.Method` and `Mcp_Method` are `Mcp-Method`.
///
/// Each decision about trust compares names by their letters and digits alone.
public enum MangledName {
    /// Returns the letters and digits of a name, in lower case.
    public static func plain(_ name: some StringProtocol) -> [UInt8] {
        name.utf8.filter(ASCII.isAlphanumeric).map(ASCII.lowercased)
    }

    /// Returns a name of the same length in lower case, with `-` for all other characters.
    static func dashed(_ name: ByteRange, in bytes: Span<UInt8>) -> [UInt8] {
        name.range.map { ASCII.isAlphanumeric(bytes[$0]) ? ASCII.lowercased(bytes[$0]) : ASCII.hyphen }
    }
}

extension Span where Element == UInt8 {
    /// Whether a server may take these bytes for the name.
    /// - Parameter plain: letters and digits of the name, in lower case (`MangledName.plain`).
    public func mayName(field plain: [UInt8]) -> Bool {
        guard count >= plain.count else { return false }
        var matched = 0
        for index in indices {
            let byte = self[index]
            guard ASCII.isAlphanumeric(byte) else { continue }
            guard matched < plain.count, ASCII.lowercased(byte) == plain[matched] else { return false }
            matched += 1
        }
        return matched == plain.count
    }
}
