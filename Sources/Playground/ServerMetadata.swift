import WireText

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
