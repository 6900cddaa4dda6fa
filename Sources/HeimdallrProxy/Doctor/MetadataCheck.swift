import Configuration
import WireText

/// Holds a client's settings against what its server says about itself (RFC 8414). That it names the issuer was seen to
/// when it was fetched.
struct MetadataCheck {
    let settings: ClientSettings
    /// The server's own words.
    let document: JSONValue

    var findings: [Finding] {
        var findings: [Finding] = []
        func add(_ text: String, _ advice: String) {
            var finding = Finding.warning("metadata", text, advice)
            finding.kin = .refutedByToken
            findings.append(finding)
        }
        if let grants = list("grant_types_supported"), !grants.contains(settings.grantType.wireName) {
            add(
                "the server does not list the grant \(settings.grantType.wireName); it lists \(Self.shown(grants))",
                "check `grant_type`, and whether the server allows it for this client; some leave out what they support"
            )
        }
        // Servers that know a client as public don't ask it to authenticate, whatever they list.
        if let methods = list("token_endpoint_auth_methods_supported"), settings.authMethod != .none,
            !methods.contains(settings.authMethod.rawValue)
        {
            add(
                "the server does not list the authentication method \(settings.authMethod.rawValue); it lists "
                    + Self.shown(methods), "write `token_endpoint_auth_method` as the server lists it")
        }
        let plain = endpoints.filter { !$0.url.lowercased().hasPrefix("https://") }
        if !plain.isEmpty {
            let names = plain.map(\.name).joined(separator: ", ")
            let text =
                "no https:// address: \(names) (\(ForeignText.printable(plain[0].url, most: 80))\(plain.count > 1 ? ", …" : ""))"
            findings.append(
                settings.allowPlaintext
                    ? .good("metadata", text + "; allow_plaintext permits that")
                    : .warning("metadata", text, "have the server name https:// addresses, or write them yourself"))
        }
        if let own = settings.tokenEndpoint, let theirs = document["token_endpoint"]?.string, own != theirs {
            findings.append(
                .warning(
                    "metadata",
                    "the server names another token_endpoint than the configuration: \(ForeignText.printable(theirs))",
                    "leave `token_endpoint` out, unless it is meant to be another one"))
        }
        return findings.isEmpty
            ? [.good("metadata", "names this issuer; grant and authentication method fit")] : findings
    }

    /// By name, in the order of their names.
    var endpoints: [(name: String, url: String)] {
        Self.endpointNames.compactMap { name in document[name]?.string.map { (name, $0) } }
    }

    static let endpointNames = [
        "token_endpoint", "authorization_endpoint", "device_authorization_endpoint", "revocation_endpoint",
        "pushed_authorization_request_endpoint", "userinfo_endpoint", "jwks_uri",
    ]

    private func list(_ name: String) -> [String]? {
        guard case .array(let values)? = document[name] else { return nil }
        return values.compactMap(\.string)
    }

    private static func shown(_ names: [String]) -> String {
        names.isEmpty ? "none" : ForeignText.printable(names.joined(separator: ", "))
    }
}

extension ClientSettings.GrantType {
    /// As `grant_type` has it on the wire, and in a server's list.
    var wireName: String {
        switch self {
        case .clientCredentials: "client_credentials"
        case .password: "password"
        case .refreshToken: "refresh_token"
        case .authorizationCode: "authorization_code"
        case .implicit: "implicit"
        case .deviceCode: "urn:ietf:params:oauth:grant-type:device_code"
        case .jwtBearer: "urn:ietf:params:oauth:grant-type:jwt-bearer"
        case .saml2Bearer: "urn:ietf:params:oauth:grant-type:saml2-bearer"
        case .tokenExchange: "urn:ietf:params:oauth:grant-type:token-exchange"
        case .githubApp: "github_app"
        case .extension(let type): type
        }
    }
}
