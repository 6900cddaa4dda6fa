import HTTPMessage
import WireText

/// Grammars of single values. Each grammar parses a text to a value, or throws advice.
enum Grammar {
    /// Whether the text is printable ASCII without spaces, and not empty.
    static func isVisible(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    static func any(_ text: String) throws(BadValue) -> String { text }

    /// Returns the text if it fits, or throws.
    static func checked(_ text: String, _ fits: Bool, _ bad: @autoclosure () -> BadValue) throws(BadValue) -> String {
        guard fits else { throw bad() }
        return text
    }

    static func nonempty(_ text: String) throws(BadValue) -> String {
        try checked(text, !text.isEmpty, BadValue("write a value that is not empty", quotes: false))
    }

    /// A path of a file or folder.
    static func path(_ text: String) throws(BadValue) -> String {
        guard text != "~", !text.hasPrefix("~/") else {
            throw BadValue("write the full path: ~ is not expanded")
        }
        return try nonempty(text)
    }

    static func boolean(_ text: String) throws(BadValue) -> Bool {
        switch text {
        case "true", "True", "TRUE": true
        case "false", "False", "FALSE": false
        default: throw BadValue("write true or false", fits: .boolean)
        }
    }

    /// One of a fixed set of words.
    static func word<T: RawRepresentable & CaseIterable>(_ text: String) throws(BadValue) -> T
    where T.RawValue == String {
        if let value = T(rawValue: text) { return value }
        throw notAmong(T.allCases.map(\.rawValue), text)
    }

    /// Returns the fault of a text that is none of these words.
    static func notAmong(_ words: [String], _ text: String) -> BadValue {
        let advice = Suggestion.nearest(to: text, among: words) ?? "one of \(words.joined(separator: ", "))"
        return BadValue("write \(advice)", fits: .words(words))
    }

    static func integer(_ range: ClosedRange<Int>) -> (String) throws(BadValue) -> Int {
        { text throws(BadValue) in
            guard let value = digits(text), range.contains(value) else {
                throw BadValue(
                    "write a whole number from \(range.lowerBound) to \(range.upperBound)", fits: .integer(range))
            }
            return value
        }
    }

    /// Returns the number; `nil` if the text has other characters than decimal digits, is empty or exceeds `Int`.
    static func digits(_ text: some StringProtocol) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ ASCII.isDigit($0) }) else { return nil }
        return Int(text)
    }

    // MARK: Durations and sizes

    /// `500ms`, `30s`, `5m`, `1h`.
    static func duration(_ range: ClosedRange<Duration>) -> (String) throws(BadValue) -> Duration {
        { text throws(BadValue) in try duration(text, range) }
    }

    /// A duration, or `off`, which gives `nil`.
    static func durationOrOff(_ range: ClosedRange<Duration>) -> (String) throws(BadValue) -> Duration? {
        { text throws(BadValue) in isOff(text) ? nil : try duration(text, range, orOff: true) }
    }

    private static func duration(
        _ text: String, _ range: ClosedRange<Duration>, orOff: Bool = false
    ) throws(BadValue) -> Duration {
        let off = orOff ? ", or off" : ""
        guard let value = unboundedDuration(text) else {
            throw BadValue("write a duration such as 500ms, 30s, 5m or 1h\(off)", fits: .duration(range, orOff: orOff))
        }
        guard range.contains(value) else {
            throw BadValue("write a duration from \(show(range.lowerBound)) to \(show(range.upperBound))\(off)")
        }
        return value
    }

    private static func unboundedDuration(_ text: String) -> Duration? {
        let number = text.prefix { $0.isASCII && $0.isNumber }
        guard let count = digits(number), count <= 1_000_000_000 else { return nil }
        return switch text.dropFirst(number.count) {
        case "ms": .milliseconds(count)
        case "s": .seconds(count)
        case "m": .seconds(count * 60)
        case "h": .seconds(count * 3600)
        default: nil
        }
    }

    static func show(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        if attoseconds != 0 { return "\(seconds * 1000 + attoseconds / 1_000_000_000_000_000)ms" }
        if seconds != 0, seconds % 3600 == 0 { return "\(seconds / 3600)h" }
        return "\(seconds)s"
    }

    /// `64KiB`, `1MiB`, `2GiB`, `512B` or a bare number of bytes.
    static func size(_ range: ClosedRange<Int>) -> (String) throws(BadValue) -> Int {
        { text throws(BadValue) in try size(text, range) }
    }

    /// A size, or `off`, which gives `nil`.
    static func sizeOrOff(_ range: ClosedRange<Int>) -> (String) throws(BadValue) -> Int? {
        { text throws(BadValue) in isOff(text) ? nil : try size(text, range, orOff: true) }
    }

    private static func size(_ text: String, _ range: ClosedRange<Int>, orOff: Bool = false) throws(BadValue) -> Int {
        let off = orOff ? ", or off" : ""
        guard let value = unboundedSize(text) else {
            throw BadValue("write a size such as 64KiB or 1MiB\(off)", fits: .size(range, orOff: orOff))
        }
        guard range.contains(value) else {
            let (least, most) = (show(bytes: range.lowerBound), show(bytes: range.upperBound))
            throw BadValue("write a size from \(least) to \(most)\(off)")
        }
        return value
    }

    private static func unboundedSize(_ text: String) -> Int? {
        let number = text.prefix { $0.isASCII && $0.isNumber }
        guard let count = digits(number), count <= 1 << 50 else { return nil }
        let unit = text.dropFirst(number.count)
        guard let shift = unit.isEmpty ? 0 : units.first(where: { $0.name == unit })?.shift else { return nil }
        let (value, overflow) = count.multipliedReportingOverflow(by: 1 << shift)
        return overflow ? nil : value
    }

    private static let units: [(name: String, shift: Int)] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)]

    static func show(bytes: Int) -> String {
        let unit = units.first { bytes >= 1 << $0.shift } ?? units[3]
        return "\(bytes >> unit.shift)\(unit.name)"
    }

    /// Whether the text means `off`. Some YAML tools change `off` to `false` when they rewrite a file.
    private static func isOff(_ text: String) -> Bool { ["off", "Off", "OFF", "false"].contains(text) }

    // MARK: HTTP

    static func method(_ text: String) throws(BadValue) -> String {
        guard ASCII.isToken(text) else {
            throw BadValue("write an HTTP method such as GET", matching: "^[!#$%&'*+.^_`|~0-9A-Z-]+$")
        }
        guard text.utf8.allSatisfy({ !(0x61...0x7A).contains($0) }) else {
            throw BadValue("methods are case-sensitive: write \(text.uppercased())")
        }
        return try checked(
            text, text != "CONNECT" && text != "TRACE",
            BadValue("CONNECT and TRACE never carry a token: leave them out"))
    }

    static func headerName(_ text: String) throws(BadValue) -> String {
        try checked(
            text, ASCII.isToken(text),
            BadValue("write a header name such as X-Api-Key", matching: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"))
    }

    /// A header name that is not in `others`, which are in lower case.
    /// - Parameter fault: text that follows the quoted name in the message.
    static func headerName(_ text: String, not others: Set<String>, _ fault: String) throws(BadValue) -> String {
        let name = try headerName(text)
        return try checked(
            name, !others.contains(name.lowercased()), BadValue("\"\(name)\" \(fault)", quotes: false))
    }

    /// Names, in lower case, of fields that frame a message, route it or concern a single connection.
    static let framingFields: Set<String> = [
        "cdn-loop", "connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "max-forwards",
        "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding",
        "upgrade", "via",
    ]

    /// Returns the name's letters and digits in lower case, because some servers compare only these (`MangledName`).
    static func normalized(field name: String) -> String { String(decoding: MangledName.plain(name), as: UTF8.self) }

    static func normalized(fields names: Set<String>) -> Set<String> { Set(names.map { normalized(field: $0) }) }

    /// A field value (RFC 9110, section 5.5) without `obs-text`, and without a space or tab at its ends.
    static func headerValue(_ text: String) throws(BadValue) -> String {
        guard ASCII.isFieldValue(text, allowingTabs: true) else {
            throw BadValue("a header value can't hold line breaks or control characters", quotes: false)
        }
        let ends = [text.utf8.first, text.utf8.last]
        return try checked(
            text, !ends.contains(0x20) && !ends.contains(0x09),
            BadValue("a header value can't begin or end with a space: remove it", quotes: false))
    }

    // MARK: OAuth

    /// Scope tokens, separated by spaces (RFC 6749, section 3.3).
    static func scopes(_ text: String) throws(BadValue) -> [String] {
        let tokens = text.split(separator: " ").map(String.init)
        guard !tokens.isEmpty, tokens.allSatisfy({ isVisible($0) && !$0.contains("\"") && !$0.contains("\\") }) else {
            throw BadValue(
                "a scope can't contain \" or \\: write [read, write] or \"read write\"", matching: #"^[^"\\]+$"#)
        }
        return tokens
    }

    /// Printable ASCII with spaces, for client_id and other values (RFC 6749, appendix A).
    static func printable(_ text: String) throws(BadValue) -> String {
        try checked(
            text, !text.isEmpty && text.utf8.allSatisfy { (0x20...0x7E).contains($0) },
            BadValue("write printable ASCII characters", matching: "^[ -~]+$"))
    }

    /// A name that appears in logs, metrics, paths and file names.
    static func name(_ text: String) throws(BadValue) -> String {
        guard let first = text.utf8.first, ASCII.isAlphanumeric(first), text.utf8.count <= 64,
            text.utf8.allSatisfy({ ASCII.isAlphanumeric($0) || "-._".utf8.contains($0) })
        else {
            throw BadValue(
                "write a name of letters, digits, dots, - and _", matching: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
        }
        return text
    }

    /// A Prometheus label name.
    static func labelName(_ text: String) throws(BadValue) -> String {
        try checked(
            text, Substitution.isName(text),
            BadValue("write a label name of letters, digits and _", matching: Substitution.namePattern))
    }
}
