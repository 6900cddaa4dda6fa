import Configuration
import WireText

/// Compares a client's settings with its server's metadata (RFC 8414). The issuer in it is known to be right.
struct MetadataCheck {
    let settings: ClientSettings
    /// `grant_type` of its token requests.
    let grant: String
    let document: JSONValue

    var findings: [Finding] {
        var findings: [Finding] = []
        func warn(_ text: String, _ advice: String, _ condition: Finding.Condition = .always) {
            var finding = Finding.warning("metadata", text, advice)
            finding.condition = condition
            findings.append(finding)
        }
        if let grants = list("grant_types_supported"), !grants.contains(grant) {
            warn(
                "the server does not list the grant \(grant); it lists \(Self.shown(grants))",
                "check `grant_type`, and whether the server allows it for this client; some leave out what they support",
                .withoutToken)
        }
        // A server does not ask a public client to authenticate, whatever it lists.
        let method = settings.authMethod
        if let methods = list("token_endpoint_auth_methods_supported"), method != .none,
            !methods.contains(method.rawValue)
        {
            warn(
                "the server does not list the authentication method \(method.rawValue); it lists \(Self.shown(methods))",
                "write `token_endpoint_auth_method` as the server lists it", .withoutToken)
        }
        let plain = Self.endpoints(document).filter { !$0.url.lowercased().hasPrefix("https://") }
        if let first = plain.first {
            let names = plain.map(\.name).joined(separator: ", ")
            let example = ForeignText.printable(first.url, most: 80) + (plain.count > 1 ? ", …" : "")
            let text = "no https:// address: \(names) (\(example))"
            if settings.allowPlaintext {
                findings.append(.good("metadata", text + "; allow_plaintext permits that"))
            } else {
                warn(text, "have the server name https:// addresses, or write them yourself")
            }
        }
        if let own = settings.tokenEndpoint, let other = document["token_endpoint"]?.string, own != other {
            warn(
                "the server names another token_endpoint than the configuration: \(ForeignText.printable(other))",
                "leave `token_endpoint` out, unless it is meant to be another one")
        }
        return findings.isEmpty
            ? [.good("metadata", "names this issuer; grant and authentication method fit")] : findings
    }

    static func endpoints(_ document: JSONValue) -> [(name: String, url: String)] {
        endpointNames.compactMap { name in document[name]?.string.map { (name, $0) } }
    }

    private static let endpointNames = [
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
