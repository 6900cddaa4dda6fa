/// A client's last request to its authorization server.
public struct LastTokenRequest: Sendable, Equatable {
    /// URL without its query, which may hold secrets.
    public var url: String?
    /// Printable reason of a failure; `nil` after an answer.
    public var cause: String?

    public init(url: String? = nil, cause: String? = nil) {
        self.url = url
        self.cause = cause
    }
}
