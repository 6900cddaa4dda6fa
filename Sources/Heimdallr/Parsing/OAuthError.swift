/// What a token endpoint says when it refuses: RFC 6749 section 5.2. Unknown codes are kept. Every text in it has been
/// made harmless: printable, at most 256 characters, without our secrets.
public struct OAuthError: Error, Sendable, Hashable, CustomStringConvertible {
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        public static let invalidRequest = Code(rawValue: "invalid_request")
        public static let invalidClient = Code(rawValue: "invalid_client")
        public static let invalidGrant = Code(rawValue: "invalid_grant")
        public static let unauthorizedClient = Code(rawValue: "unauthorized_client")
        public static let unsupportedGrantType = Code(rawValue: "unsupported_grant_type")
        public static let invalidScope = Code(rawValue: "invalid_scope")
        /// RFC 8707 section 2.
        public static let invalidTarget = Code(rawValue: "invalid_target")
        /// RFC 6749 section 4.1.2.1; token endpoints send them too.
        public static let accessDenied = Code(rawValue: "access_denied")
        public static let unsupportedResponseType = Code(rawValue: "unsupported_response_type")
        public static let serverError = Code(rawValue: "server_error")
        public static let temporarilyUnavailable = Code(rawValue: "temporarily_unavailable")
        /// RFC 8628 section 3.5.
        public static let authorizationPending = Code(rawValue: "authorization_pending")
        public static let slowDown = Code(rawValue: "slow_down")
        public static let expiredToken = Code(rawValue: "expired_token")

        public var description: String { rawValue }
    }

    /// Of the HTTP answer; 302 for what came by way of a browser.
    public let status: Int
    public let code: Code
    /// `error_description`
    public let detail: String?
    /// `error_uri`
    public let uri: String?

    public init(status: Int, code: Code, detail: String? = nil, uri: String? = nil) {
        self.status = status
        self.code = code
        self.detail = detail
        self.uri = uri
    }

    public var description: String {
        var text = code.rawValue
        if let detail { text += ": \(detail)" }
        if let uri { text += " (\(uri))" }
        return text
    }
}
