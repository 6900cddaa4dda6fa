/// Names of grant types. An unknown type keeps its name.
enum GrantName {
    private static let urn = "urn:ietf:params:oauth:grant-type:"
    private static let words = [
        "client_credentials": "client credentials", "authorization_code": "authorization code",
        "refresh_token": "refresh token", "device_code": "device code", "token-exchange": "token exchange",
        "jwt-bearer": "JWT bearer", "saml2-bearer": "SAML bearer", "github_app": "GitHub App", "aws": "AWS",
    ]

    /// Returns the usual name in English.
    static func inWords(_ type: String) -> String { words[short(type)] ?? type }

    /// Returns the name in the configuration, without the URN's prefix.
    static func short(_ type: String) -> String {
        let name = String(type.dropFirst(urn.count))
        return type.hasPrefix(urn) && words[name] != nil ? name : type
    }
}
