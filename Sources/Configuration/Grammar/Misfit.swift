/// A value that does not fit; says what to write instead, in words that follow "key: ".
struct Misfit: Error {
    var message: String
    /// Whether the message is followed by what was written.
    var quotes: Bool
    /// The same for programs: what would fit, for the schema that editors get. Without it, any single value.
    var fits: ValueKind?

    init(_ message: String, quotes: Bool = true, fits: ValueKind? = nil) {
        self.message = message
        self.quotes = quotes
        self.fits = fits
    }

    /// The same, where more or something else fits than the grammar below knows of.
    func fitting(_ kind: ValueKind) -> Misfit { Misfit(message, quotes: quotes, fits: kind) }
}
