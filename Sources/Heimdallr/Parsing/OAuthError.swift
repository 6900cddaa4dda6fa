internal import WireText

/// Error of the authorization server: RFC 6749 sections 4.1.2.1 and 5.2. Printable, at most 256 characters, no secrets.
public struct OAuthError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The value of `error`. Servers may send further values.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The server's text, made safe to show.
        public let rawValue: String

        /// - Parameter rawValue: any text, to compare with a server's value.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A parameter is missing, repeated or malformed: RFC 6749 section 5.2.
        public static let invalidRequest = Code(rawValue: "invalid_request")
        /// The client is unknown or failed to authenticate: RFC 6749 section 5.2.
        public static let invalidClient = Code(rawValue: "invalid_client")
        /// The refresh token, code or password is wrong, expired or revoked: RFC 6749 section 5.2.
        public static let invalidGrant = Code(rawValue: "invalid_grant")
        /// The client may not use this grant type: RFC 6749 section 5.2.
        public static let unauthorizedClient = Code(rawValue: "unauthorized_client")
        /// The server does not know this grant type: RFC 6749 section 5.2.
        public static let unsupportedGrantType = Code(rawValue: "unsupported_grant_type")
        /// The scope is unknown, malformed or exceeds the allowed scope: RFC 6749 section 5.2.
        public static let invalidScope = Code(rawValue: "invalid_scope")
        /// The server does not know the `resource`, or issues no token for it: RFC 8707 section 2.
        public static let invalidTarget = Code(rawValue: "invalid_target")
        /// The server does not accept the `authorization_details`: RFC 9396 section 5.
        public static let invalidAuthorizationDetails = Code(rawValue: "invalid_authorization_details")
        /// The person or the server refused the login: RFC 6749 section 4.1.2.1.
        public static let accessDenied = Code(rawValue: "access_denied")
        /// The server does not support this kind of login: RFC 6749 section 4.1.2.1.
        public static let unsupportedResponseType = Code(rawValue: "unsupported_response_type")
        /// The server has a fault: RFC 6749 section 4.1.2.1. Some token endpoints send it too.
        public static let serverError = Code(rawValue: "server_error")
        /// The server is overloaded: RFC 6749 section 4.1.2.1. Some token endpoints send it too.
        public static let temporarilyUnavailable = Code(rawValue: "temporarily_unavailable")
        /// The person has not logged in yet: RFC 8628 section 3.5.
        public static let authorizationPending = Code(rawValue: "authorization_pending")
        /// The client polls too often: RFC 8628 section 3.5.
        public static let slowDown = Code(rawValue: "slow_down")
        /// The device login has expired: RFC 8628 section 3.5.
        public static let expiredToken = Code(rawValue: "expired_token")

        public var description: String { rawValue }

        /// Words of the protocols. A server's word is compared with these before secrets in it are hidden: a secret may
        /// be a part of such a word.
        static let known: Set<Code> = [
            .invalidRequest, .invalidClient, .invalidGrant, .unauthorizedClient, .unsupportedGrantType, .invalidScope,
            .invalidTarget, .invalidAuthorizationDetails, .accessDenied, .unsupportedResponseType, .serverError,
            .temporarilyUnavailable, .authorizationPending, .slowDown, .expiredToken,
            Code(rawValue: DPoPNonce.error),
        ]

        /// Whether the word blames the client's registration or authentication, not its grant.
        var blamesClient: Bool {
            rawValue.lowercased().contains("client") || self == .unsupportedGrantType || self == .invalidScope
                || self == .invalidRequest || self == .invalidTarget || self == .invalidAuthorizationDetails
        }
    }

    /// The HTTP status of the response; 302 for a response through a browser.
    public let status: Int
    /// `error`: the fault.
    public let code: Code
    /// `error_description`: the fault in the server's words.
    public let detail: String?
    /// `error_uri`: a page about the error.
    public let uri: String?

    /// The parameters are the properties. `detail` and `uri` must be safe to show.
    public init(status: Int, code: Code, detail: String? = nil, uri: String? = nil) {
        self.status = status
        self.code = code
        self.detail = detail
        self.uri = uri
    }

    /// - Parameter value: returns the server's text of a parameter. It is then made safe to show.
    init(status: Int, _ code: String, hiding secrets: [Secret], _ value: (String) -> String?) {
        func shown(_ text: String) -> String { ServerText.sanitize(text, hiding: secrets) }
        let word = Code(rawValue: code)
        self.init(
            status: status, code: Code.known.contains(word) ? word : Code(rawValue: shown(code)),
            detail: value("error_description").map(shown), uri: value("error_uri").map(shown))
    }

    /// - Parameter words: the server's words, which are then made safe to show.
    init(status: Int, _ words: ServerWords, hiding secrets: [Secret]) {
        self.init(status: status, words.code ?? "", hiding: secrets) {
            $0 == "error_description" ? words.detail : words.uri
        }
    }

    /// Whether the server misses a parameter `scope`, by its own words.
    package var missesScope: Bool { code == .invalidRequest && detail?.lowercased().contains("scope") ?? false }

    public var description: String {
        var text = code.rawValue
        if let detail { text += ": \(detail)" }
        if let uri { text += " (\(uri))" }
        return text
    }
}

/// Text from a server, which may repeat secrets that were sent to it.
package enum ServerText {
    static let maxCharacters = 256

    /// Returns printable text of at most 256 characters. Replaces secrets in any spelling by `<redacted>`.
    package static func sanitize(_ text: String, hiding secrets: [Secret]) -> String {
        let start = Array(text.utf8.prefix(16 * 1024))
        let bytes = SecretSpelling.replacing(
            secrets, in: start, by: mark, enough: 4 * (maxCharacters + 1), isCut: start.count < text.utf8.count)
        return ForeignText.printable(String(decoding: bytes, as: UTF8.self), most: maxCharacters)
    }

    private static let mark = Array("<redacted>".utf8)
}
