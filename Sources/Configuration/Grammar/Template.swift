import WireText

/// Parts of a value that stand for the operator's own, copied from a server's documentation.
enum Template {
    /// Returns `{tenant}` or `<tenant>`; `nil` without such a part.
    static func braced(in text: String) -> String? {
        for (open, close) in [("{", "}"), ("<", ">")] {
            guard let start = text.firstRange(of: open), let end = text[start.upperBound...].firstRange(of: close),
                end.lowerBound > start.upperBound
            else { continue }
            return String(text[start.lowerBound..<end.upperBound])
        }
        return nil
    }

    private static let alone = ["TENANT", "TENANTID", "DOMAIN", "REALM", "REGION"]
    private static let ends = alone + ["ID", "NAME", "HOST", "ORG"]

    /// Returns a word in capitals such as `TENANT_ID` or `YOUR_DOMAIN`; `nil` without one.
    static func word(in text: String) -> String? {
        let words = text.utf8.split { !ASCII.isAlphanumeric($0) && $0 != ASCII.underscore && $0 != ASCII.hyphen }
        for word in words {
            guard word.allSatisfy({ (0x41...0x5A).contains($0) || $0 == ASCII.underscore || $0 == ASCII.hyphen }) else {
                continue
            }
            let parts = word.split { $0 == ASCII.underscore || $0 == ASCII.hyphen }.map {
                String(decoding: $0, as: UTF8.self)
            }
            guard let last = parts.last, let first = parts.first else { continue }
            let isTemplate =
                parts.count == 1 ? alone.contains(last) : ["YOUR", "MY"].contains(first) || ends.contains(last)
            if isTemplate {
                return String(decoding: word, as: UTF8.self)
            }
        }
        return nil
    }
}
