/// The part of an answer's `scope` that is kept. It is shown to people later, so a hostile one must do no harm.
enum GrantedScope {
    /// Limit of names that were not asked for.
    static let maxCount = 64
    static let maxBytes = 128

    /// Returns each name once. Leaves out names that are no scope-token (RFC 6749 section 3.3), too long, too many or secret.
    /// Requested names are always kept.
    /// - Parameter names: one entry may hold several, with spaces between them.
    static func keep(_ names: [String], askedFor: [String], hiding secrets: [Secret]) -> [String] {
        let known = Set(askedFor.flatMap { $0.split(separator: " ") })
        var seen: Set<Substring> = []
        var kept: [Substring] = []
        var foreign: [Substring] = []
        for name in names.lazy.flatMap({ $0.split(separator: " ") }) where !seen.contains(name) {
            if !known.contains(name) {
                guard foreign.count < maxCount, isToken(name) else { continue }
                foreign.append(name)
            }
            seen.insert(name)
            kept.append(name)
        }
        let harmless = harmless(foreign, secrets)
        return kept.filter { known.contains($0) || harmless.contains($0) }.map(String.init)
    }

    /// 0x21, 0x23–0x5B, 0x5D–0x7E.
    private static func isToken(_ name: Substring) -> Bool {
        name.utf8.count <= maxBytes
            && name.utf8.allSatisfy {
                (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
            }
    }

    /// Checks all names as one text: that costs no more than one name, and finds a secret with a space in it.
    private static func harmless(_ names: [Substring], _ secrets: [Secret]) -> Set<Substring> {
        guard !names.isEmpty else { return [] }
        // No byte of a scope-token.
        let mark = UInt8(ascii: "\\")
        let text = SecretSpelling.replacing(
            secrets, in: Array(names.joined(separator: " ").utf8), by: [mark], enough: .max)
        return Set(String(decoding: text, as: UTF8.self).split(separator: " ").filter { !$0.utf8.contains(mark) })
    }
}
