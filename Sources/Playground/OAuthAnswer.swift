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

/// An error answer (RFC 6749, section 5.2; RFC 8628, section 3.5).
struct ErrorAnswer: Error, Equatable {
    let code: String
    let sentence: String
    var status = 400
    /// Whether the client used the Authorization field, so that the answer needs a challenge.
    var wantsChallenge = false

    static func invalidRequest(_ sentence: String) -> ErrorAnswer { .init(code: "invalid_request", sentence: sentence) }
    static func invalidGrant(_ sentence: String) -> ErrorAnswer { .init(code: "invalid_grant", sentence: sentence) }

    static func invalidClient(basic: Bool) -> ErrorAnswer {
        .init(
            code: "invalid_client", sentence: "The client is unknown or its secret is wrong.", status: 401,
            wantsChallenge: basic)
    }

    static let invalidScope = ErrorAnswer(
        code: "invalid_scope", sentence: "The scopes here are read and write, and a refresh can't add one.")
    static let unsupportedGrantType = ErrorAnswer(
        code: "unsupported_grant_type",
        sentence:
            "The grant types here are client_credentials, authorization_code, device_code, password and refresh_token.")
    static let authorizationPending = ErrorAnswer(code: "authorization_pending", sentence: "No decision yet.")
    static let slowDown = ErrorAnswer(code: "slow_down", sentence: "No decision yet; poll less often.")
    static let accessDenied = ErrorAnswer(code: "access_denied", sentence: "The person denied the sign-in.")
    static let expiredToken = ErrorAnswer(
        code: "expired_token", sentence: "The device code is unknown, used or expired.")

    var json: JSON { ["error": .string(code), "error_description": .string(sentence)] }
}

/// The authorization server's metadata (RFC 8414).
enum PublishedMetadata {
    static func json(issuer: String) -> JSON {
        [
            "issuer": .string(issuer), "authorization_endpoint": .string(issuer + "/authorize"),
            "token_endpoint": .string(issuer + "/token"),
            "device_authorization_endpoint": .string(issuer + "/device_authorization"),
            "revocation_endpoint": .string(issuer + "/revoke"), "registration_endpoint": .string(issuer + "/register"),
            "response_types_supported": ["code"],
            "grant_types_supported": [
                "client_credentials", "authorization_code", "urn:ietf:params:oauth:grant-type:device_code", "password",
                "refresh_token",
            ],
            "scopes_supported": JSON(AuthorizationServer.scopes), "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
            "authorization_response_iss_parameter_supported": true,
        ]
    }
}

extension SignInGrants.DeviceCodes {
    /// RFC 8628, section 3.2.
    func json(issuer: String) -> JSON {
        [
            "device_code": .string(deviceCode), "user_code": .string(userCode),
            "verification_uri": .string(issuer + "/device"),
            "verification_uri_complete": .string("\(issuer)/device?user_code=\(userCode)"),
            "expires_in": .number(Int(SignInGrants.deviceLifetime.components.seconds)),
            "interval": .number(Int(SignInGrants.pollInterval.components.seconds)),
        ]
    }
}
