import WireText

/// The accepted form of a single value, for the schema. Each grammar gives it in the `BadValue` of a refused value.
indirect enum ValueKind: Sendable {
    case text(Text)
    /// Words that editors offer, and deprecated words, which are only accepted.
    case words([String], deprecated: [String] = [])
    case boolean
    case integer(ClosedRange<Int>)
    case duration(ClosedRange<Duration>, orOff: Bool = false)
    case size(ClosedRange<Int>, orOff: Bool = false)
    case any([ValueKind])

    /// A single value that is read as text. Without quotes, it may look like a number or a boolean.
    struct Text: Sendable {
        /// A regular expression (ECMA 262 and Python). It matches all accepted values, and perhaps other values.
        var pattern: String?
        var isEmptyTaken = true
        var isNumberTaken = true
        var isBooleanTaken = true
    }

    static func text(matching pattern: String) -> ValueKind { .text(Text(pattern: pattern)) }

    // MARK: Accepted values of a grammar

    /// A text that every grammar refuses, except a grammar that accepts any text.
    private static let impossibleText = "\u{0}"
    private static let numbers = ["0", "1", "8080", "12.5", "-1"]

    /// Finds the accepted form of a grammar: passes it an impossible value, and takes the form from its `BadValue`.
    init<Value>(of parse: (String) throws(BadValue) -> Value) {
        do throws(BadValue) {
            _ = try parse(Self.impossibleText)
            self = .text(Text())
        } catch {
            self = error.fits ?? .text(Text())
        }
        self = tried { text in (try? parse(text)) != nil }
    }

    /// Completes the form: tries an empty text, numbers and `true`.
    private func tried(_ takes: (String) -> Bool) -> ValueKind {
        switch self {
        case .any(let kinds): return .any(kinds.map { $0.tried(takes) })
        case .text(var text):
            text.isEmptyTaken = takes("")
            text.isNumberTaken = Self.numbers.contains(where: takes)
            text.isBooleanTaken = takes("true")
            return .text(text)
        default: return self
        }
    }

    /// Returns the JSON of a default value; `nil` if it is unknown.
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

    /// Writes a duration: five minutes as `5m`, but one minute as `60s`.
    private static func show(_ duration: Duration) -> String {
        let minutes = duration.components.seconds / 60
        return minutes > 1 && minutes % 60 != 0 && duration == .seconds(60 * minutes)
            ? "\(minutes)m" : Grammar.show(duration)
    }
}
