import WireText

/// What a single value may be, told so that programs understand it: by each grammar, in the `Misfit` of what it refuses.
indirect enum ValueKind: Sendable {
    case text(Text)
    /// The first ones are offered; those of `deprecated` are taken as well.
    case words([String], deprecated: [String] = [])
    case boolean
    case integer(ClosedRange<Int>)
    case duration(ClosedRange<Duration>, orOff: Bool = false)
    case size(ClosedRange<Int>, orOff: Bool = false)
    case any([ValueKind])

    /// A single value that is taken as text: without quotes it may look like a number or like `true`, too.
    struct Text: Sendable {
        /// A regular expression (ECMA 262, and Python takes it) that fits all that is taken, and perhaps more.
        var pattern: String?
        var isEmptyTaken = true
        var isNumberTaken = true
        var isBooleanTaken = true
    }

    static func text(matching pattern: String) -> ValueKind { .text(Text(pattern: pattern)) }

    // MARK: What a grammar takes

    /// No grammar takes it but one that takes all text.
    private static let stranger = "\u{0}"
    private static let numbers = ["0", "1", "8080", "12.5", "-1"]

    /// What a grammar takes, by its own word: it is given what nobody writes, and the `Misfit` says what would fit.
    init<Value>(of parse: (String) throws(Misfit) -> Value) {
        do throws(Misfit) {
            _ = try parse(Self.stranger)
            self = .text(Text())
        } catch {
            self = error.fits ?? .text(Text())
        }
        self = tried { text in (try? parse(text)) != nil }
    }

    /// What is told of texts leaves open whether numbers are such texts: that shows when they are tried.
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

    /// A value of the settings as it would be written here; `nil` where that is not known.
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
