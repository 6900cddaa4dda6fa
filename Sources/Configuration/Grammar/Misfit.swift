/// A value that does not fit; says what to write instead, in words that follow "key: ".
struct Misfit: Error {
    var message: String
    /// Whether the message is followed by what was written.
    var quotes: Bool

    init(_ message: String, quotes: Bool = true) {
        self.message = message
        self.quotes = quotes
    }
}
