/// The error for a value that a grammar refuses. The message gives the correction, and follows "key: ".
struct BadValue: Error {
    var message: String
    /// Whether the operator's text is appended to the message.
    var quotes: Bool
    /// Accepted values, for the schema of editors. With `nil`, the schema accepts any single value.
    var fits: ValueKind?

    init(_ message: String, quotes: Bool = true, fits: ValueKind? = nil) {
        self.message = message
        self.quotes = quotes
        self.fits = fits
    }

    /// - Parameter pattern: regular expression that matches all accepted texts.
    init(_ message: String, matching pattern: String) { self.init(message, fits: .text(matching: pattern)) }

    /// Returns this error with other accepted values, for readers that accept more than the grammar.
    func fitting(_ kind: ValueKind) -> BadValue { BadValue(message, quotes: quotes, fits: kind) }
}
