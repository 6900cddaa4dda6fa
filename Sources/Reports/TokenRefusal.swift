/// What a program gets that wants a token which can't be had.
public struct TokenRefusal: Sendable, Equatable {
    public let status: Int
    public let title: String
    /// Where a browser begins the login that is wanted.
    public let loginURL: String?

    public init(status: Int, title: String, loginURL: String?) {
        self.status = status
        self.title = title
        self.loginURL = loginURL
    }
}
