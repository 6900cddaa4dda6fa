/// What the authorization server says of itself (RFC 8414).
enum ServerMetadata {
    static func json(issuer: String) -> JSON {
        .object([
            ("issuer", .string(issuer)),
            ("authorization_endpoint", .string(issuer + "/authorize")),
            ("token_endpoint", .string(issuer + "/token")),
            ("device_authorization_endpoint", .string(issuer + "/device_authorization")),
            ("revocation_endpoint", .string(issuer + "/revoke")),
            ("response_types_supported", .array(["code"])),
            (
                "grant_types_supported",
                .array([
                    "client_credentials", "authorization_code", "urn:ietf:params:oauth:grant-type:device_code",
                    "password",
                    "refresh_token",
                ])
            ),
            ("scopes_supported", .array(AuthorizationServer.scopes.sorted().map { .string($0) })),
            ("code_challenge_methods_supported", .array(["S256"])),
            ("token_endpoint_auth_methods_supported", .array(["client_secret_basic", "client_secret_post"])),
            ("authorization_response_iss_parameter_supported", .boolean(true)),
        ])
    }
}

extension SignInGrants.DeviceCodes {
    /// RFC 8628, section 3.2.
    func json(issuer: String) -> JSON {
        .object([
            ("device_code", .string(deviceCode)), ("user_code", .string(userCode)),
            ("verification_uri", .string(issuer + "/device")),
            ("verification_uri_complete", .string("\(issuer)/device?user_code=\(userCode)")),
            ("expires_in", .number(Int(SignInGrants.deviceLifetime.components.seconds))),
            ("interval", .number(Int(SignInGrants.pollInterval.components.seconds))),
        ])
    }
}
