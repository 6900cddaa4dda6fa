/// Names of grant types.
enum GrantName {
    /// The usual name.
    static func inWords(_ type: String) -> String {
        switch type {
        case "client_credentials": "client credentials"
        case "authorization_code": "authorization code"
        case "refresh_token": "refresh token"
        case "urn:ietf:params:oauth:grant-type:device_code": "device code"
        case "urn:ietf:params:oauth:grant-type:token-exchange": "token exchange"
        case "urn:ietf:params:oauth:grant-type:jwt-bearer": "JWT bearer"
        case "github_app": "GitHub App"
        case "urn:ietf:params:oauth:grant-type:saml2-bearer": "SAML bearer"
        default: type
        }
    }

    /// The name in the configuration: without the URN's prefix.
    static func short(_ type: String) -> String {
        let prefix = "urn:ietf:params:oauth:grant-type:"
        let name = type.dropFirst(prefix.count)
        guard type.hasPrefix(prefix), ["device_code", "token-exchange", "jwt-bearer", "saml2-bearer"].contains(name)
        else {
            return type
        }
        return String(name)
    }
}
