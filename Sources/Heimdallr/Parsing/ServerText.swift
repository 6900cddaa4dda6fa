/// Text that a server sent, made fit to be shown.
enum ServerText {
    static let maxCharacters = 256

    /// Live secrets (in the spellings a server could echo) become `<redacted>`, what does not print becomes `?`, and
    /// the rest is cut at 256 characters.
    static func sanitize(_ text: String, hiding secrets: [Secret]) -> String {
        var bytes = Array(text.utf8.prefix(16 * 1024))
        for secret in secrets where !secret.isEmpty {
            let raw = secret.revealedBytes
            var spellings = [raw]
            for spelling in [FormEncoding.form(raw), FormEncoding.percent(raw)] where !spellings.contains(spelling) {
                spellings.append(spelling)
            }
            for spelling in spellings { bytes = replacing(spelling, in: bytes) }
        }
        var output = ""
        for (count, scalar) in String(decoding: bytes, as: UTF8.self).unicodeScalars.enumerated() {
            if count == maxCharacters {
                output += "…"
                break
            }
            output.unicodeScalars.append(isPrintable(scalar) ? scalar : "?")
        }
        return output
    }

    private static let mark = Array("<redacted>".utf8)

    private static func replacing(_ needle: [UInt8], in haystack: [UInt8]) -> [UInt8] {
        guard needle.count <= haystack.count else { return haystack }
        var output: [UInt8] = []
        output.reserveCapacity(haystack.count)
        var index = 0
        while index < haystack.count {
            if haystack[index] == needle[0], haystack[index...].starts(with: needle) {
                output += mark
                index += needle.count
            } else {
                output.append(haystack[index])
                index += 1
            }
        }
        return output
    }

    private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        // Format characters can turn a line around on a terminal; separators can break it.
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
        default: true
        }
    }
}
