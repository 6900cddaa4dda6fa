/// Advice for a client whose grant needs a person.
public struct SignInHint: Sendable, Equatable {
    /// The advice, as text that follows a colon.
    public var advice: String
    /// URL that begins the login in a browser; `nil` if the login needs a terminal.
    public var url: String?
    /// Whether there was a sign-in, which the server or an API has ended.
    public var wasLost: Bool

    public init(advice: String, url: String?, wasLost: Bool = false) {
        self.advice = advice
        self.url = url
        self.wasLost = wasLost
    }
}
