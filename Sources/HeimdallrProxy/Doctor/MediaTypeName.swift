import WireText

/// The `type/subtype` of a Content-Type field (RFC 9110 section 8.3.1), where it is one, and a short one.
struct MediaTypeName {
    static let most = 60
    let text: String

    init?(_ field: String) {
        let name = field.prefix { $0 != ";" && $0 != " " && $0 != "\t" }
        let parts = name.utf8.split(separator: ASCII.slash, omittingEmptySubsequences: false)
        guard parts.count == 2, name.utf8.count <= Self.most,
            parts.allSatisfy({ part in !part.isEmpty && part.allSatisfy(Self.isLetter) })
        else { return nil }
        text = String(name)
    }

    /// Those that registered names are made of (RFC 6838 section 4.2).
    private static func isLetter(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || "!#$&-^_.+".utf8.contains(byte)
    }
}
