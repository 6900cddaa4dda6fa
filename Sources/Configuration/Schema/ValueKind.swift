import WireText

/// The accepted form of a single value, for programs. Each grammar states it in the `Misfit` of a refused value.
indirect enum ValueKind: Sendable {
    case text(Text)
    /// The first words are offered; `deprecated` ones are also accepted.
    case words([String], deprecated: [String] = [])
    case boolean
    case integer(ClosedRange<Int>)
    case duration(ClosedRange<Duration>, orOff: Bool = false)
    case size(ClosedRange<Int>, orOff: Bool = false)
    case any([ValueKind])

    /// A single value that is read as text. Without quotes it may look like a number or like `true`.
    struct Text: Sendable {
        /// A regular expression (ECMA 262 and Python) that matches all accepted values, and perhaps more.
        var pattern: String?
        var isEmptyTaken = true
        var isNumberTaken = true
        var isBooleanTaken = true
    }

    static func text(matching pattern: String) -> ValueKind { .text(Text(pattern: pattern)) }

    // MARK: What a grammar takes

    /// Refused by every grammar except one that accepts all text.
    private static let stranger = "\u{0}"
    private static let numbers = ["0", "1", "8080", "12.5", "-1"]

    /// The accepted form of a grammar: the grammar receives an impossible value, and its `Misfit` states the form.
    init<Value>(of parse: (String) throws(Misfit) -> Value) {
        do throws(Misfit) {
            _ = try parse(Self.stranger)
            self = .text(Text())
        } catch {
            self = error.fits ?? .text(Text())
        }
        self = tried { text in (try? parse(text)) != nil }
    }

    /// Completes the form by trying an empty text, numbers and `true`.
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

    /// The JSON of a default; `nil` when unknown.
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

    /// Five minutes are `5m`; one is `60s`.
    private static func show(_ duration: Duration) -> String {
        let minutes = duration.components.seconds / 60
        return minutes > 1 && minutes % 60 != 0 && duration == .seconds(60 * minutes)
            ? "\(minutes)m" : Grammar.show(duration)
    }
}
