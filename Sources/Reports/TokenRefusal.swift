/// The answer to a request when no token is available.
public struct TokenRefusal: Sendable, Equatable {
    public let status: Int
    public let title: String
    /// URL that begins the required login in a browser.
    public let loginURL: String?

    public init(status: Int, title: String, loginURL: String?) {
        self.status = status
        self.title = title
        self.loginURL = loginURL
    }
}
