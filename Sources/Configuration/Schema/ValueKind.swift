import WireText

/// The accepted form of a single value, for the schema. Each grammar gives it in the `BadValue` of a refused value.
indirect enum ValueKind: Sendable {
    case text(Text)
    /// Words that editors offer, and deprecated words, which editors mark.
    case words([String], deprecated: [String] = [])
    case boolean
    case integer(ClosedRange<Int>)
    case duration(ClosedRange<Duration>, orOff: Bool = false)
    case size(ClosedRange<Int>, orOff: Bool = false)
    case any([ValueKind])

    /// A single value that is read as text. Without quotes, it may look like a number or a boolean.
    struct Text: Sendable {
        /// A regular expression, valid in ECMA 262 and in Python. It matches all accepted values, and perhaps others.
        var pattern: String?
        var acceptsEmpty = true
        var acceptsNumbers = true
        var acceptsBooleans = true
    }

    static func text(matching pattern: String) -> ValueKind { .text(Text(pattern: pattern)) }

    // MARK: Accepted values of a grammar

    /// A text that every grammar refuses, except a grammar that accepts any text.
    private static let impossibleText = "\u{0}"
    private static let numbers = ["0", "1", "8080", "12.5", "-1"]

    /// Finds the form that a grammar accepts: passes `impossibleText` to the grammar, and reads the thrown `BadValue`.
    init<Value>(of parse: (String) throws(BadValue) -> Value) {
        do throws(BadValue) {
            _ = try parse(Self.impossibleText)
            self = .text(Text())
        } catch {
            self = error.fits ?? .text(Text())
        }
        self = completed { text in (try? parse(text)) != nil }
    }

    /// Returns the form, completed by trials of an empty text, numbers and `true`.
    private func completed(by accepts: (String) -> Bool) -> ValueKind {
        switch self {
        case .any(let kinds): return .any(kinds.map { $0.completed(by: accepts) })
        case .text(var text):
            text.acceptsEmpty = accepts("")
            text.acceptsNumbers = Self.numbers.contains(where: accepts)
            text.acceptsBooleans = accepts("true")
            return .text(text)
        default: return self
        }
    }

    /// Returns the JSON of a default value; with `orOff`, `off` for an absent value. Returns `nil` for an empty text, and
    /// for a value that this kind can't hold.
    func json<Value>(_ value: Value) -> JSON? {
        switch self {
        case .boolean: (value as? Bool).map { .bool($0) }
        case .integer: (value as? Int).map { .number($0) }
        case .duration(_, let orOff):
            (value as? Duration).map { .string(Self.show($0)) } ?? (orOff ? "off" : nil)
        case .size(_, let orOff): (value as? Int).map { .string(Grammar.show(bytes: $0)) } ?? (orOff ? "off" : nil)
        case .words: (value as? any RawRepresentable).flatMap { $0.rawValue as? String }.map { .string($0) }
        case .text, .any: (value as? String).flatMap { $0.isEmpty ? nil : .string($0) }
        }
    }

    /// Writes a duration as docs/configuration.md does: five minutes as `5m`, but one minute as `60s`.
    private static func show(_ duration: Duration) -> String {
        let minutes = duration.components.seconds / 60
        return minutes > 1 && minutes % 60 != 0 && duration == .seconds(60 * minutes)
            ? "\(minutes)m" : Grammar.show(duration)
    }
}
