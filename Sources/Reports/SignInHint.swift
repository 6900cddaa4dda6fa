/// How somebody gives a client a token that needs a person.
public struct SignInHint: Sendable, Equatable {
    /// What to do, to stand behind a colon.
    public var advice: String
    /// Where a browser begins the login; `nil` when it has to be a terminal.
    public var url: String?

    public init(advice: String, url: String?) {
        self.advice = advice
        self.url = url
    }
}
