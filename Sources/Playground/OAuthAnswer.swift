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

/// The authorization server's metadata (RFC 8414).
enum ServerMetadata {
    static func json(issuer: String) -> JSON {
        .object([
            .init("issuer", .string(issuer)),
            .init("authorization_endpoint", .string(issuer + "/authorize")),
            .init("token_endpoint", .string(issuer + "/token")),
            .init("device_authorization_endpoint", .string(issuer + "/device_authorization")),
            .init("revocation_endpoint", .string(issuer + "/revoke")),
            .init("response_types_supported", .array(["code"])),
            .init(
                "grant_types_supported",
                .array([
                    "client_credentials", "authorization_code", "urn:ietf:params:oauth:grant-type:device_code",
                    "password",
                    "refresh_token",
                ])
            ),
            .init("scopes_supported", .array(AuthorizationServer.scopes.sorted().map { .string($0) })),
            .init("code_challenge_methods_supported", .array(["S256"])),
            .init("token_endpoint_auth_methods_supported", .array(["client_secret_basic", "client_secret_post"])),
            .init("authorization_response_iss_parameter_supported", .bool(true)),
        ])
    }
}

extension SignInGrants.DeviceCodes {
    /// RFC 8628, section 3.2.
    func json(issuer: String) -> JSON {
        .object([
            .init("device_code", .string(deviceCode)), .init("user_code", .string(userCode)),
            .init("verification_uri", .string(issuer + "/device")),
            .init("verification_uri_complete", .string("\(issuer)/device?user_code=\(userCode)")),
            .init("expires_in", .number(Int(SignInGrants.deviceLifetime.components.seconds))),
            .init("interval", .number(Int(SignInGrants.pollInterval.components.seconds))),
        ])
    }
}
