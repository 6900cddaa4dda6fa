/// A client's last request to its authorization server.
public struct LastTokenRequest: Sendable, Equatable {
    /// Without its query, which may hold what nobody should read.
    public var url: String?
    /// Printable; `nil`: there was an answer.
    public var cause: String?

    public init(url: String? = nil, cause: String? = nil) {
        self.url = url
        self.cause = cause
    }
}
