import WireText

/// A successful answer of the token endpoint (RFC 6749, section 5.1).
struct IssuedToken: Sendable, Equatable {
    let accessToken: String
    let expiresIn: Duration
    let refreshToken: String?
    let scope: String

    var json: JSON {
        var members: [JSON.Member] = [
            .init("access_token", .string(accessToken)), .init("token_type", "Bearer"),
            .init("expires_in", .number(Int(expiresIn.components.seconds))), .init("scope", .string(scope)),
        ]
        if let refreshToken { members.append(.init("refresh_token", .string(refreshToken))) }
        return .object(members)
    }
}

/// An error answer (RFC 6749, section 5.2).
enum OAuthError: Error, Equatable {
    case invalidRequest(String)
    /// `basic`: the client used the Authorization field, so the answer needs a challenge.
    case invalidClient(basic: Bool)
    case invalidGrant(String)
    case invalidScope
    case unsupportedGrantType
    /// RFC 8628, section 3.5.
    case authorizationPending
    case slowDown
    case accessDenied
    case expiredToken

    var status: Int {
        if case .invalidClient = self { 401 } else { 400 }
    }

    var code: String {
        switch self {
        case .invalidRequest: "invalid_request"
        case .invalidClient: "invalid_client"
        case .invalidGrant: "invalid_grant"
        case .invalidScope: "invalid_scope"
        case .unsupportedGrantType: "unsupported_grant_type"
        case .authorizationPending: "authorization_pending"
        case .slowDown: "slow_down"
        case .accessDenied: "access_denied"
        case .expiredToken: "expired_token"
        }
    }

    var sentence: String {
        switch self {
        case .invalidRequest(let sentence), .invalidGrant(let sentence): sentence
        case .invalidClient: "The client is unknown or its secret is wrong."
        case .invalidScope: "The scopes here are read and write, and a refresh can't add one."
        case .unsupportedGrantType:
            "The grant types here are client_credentials, authorization_code, device_code, password and refresh_token."
        case .authorizationPending: "Nobody has decided yet."
        case .slowDown: "Nobody has decided yet; ask less often."
        case .accessDenied: "The person denied it."
        case .expiredToken: "The device code is unknown, used or expired."
        }
    }

    var json: JSON { .object([.init("error", .string(code)), .init("error_description", .string(sentence))]) }
}
