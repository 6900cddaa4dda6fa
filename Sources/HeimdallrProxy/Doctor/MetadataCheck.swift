import Configuration
import Heimdallr
import WireText

/// Compares a client's settings with its server's metadata (RFC 8414), whose issuer was already checked.
struct MetadataCheck {
    let settings: ClientSettings
    /// `grant_type` of the client's token requests.
    let grant: String
    /// Whether the server issued a token. The server's lists of grants and methods then don't matter.
    let hasToken: Bool
    let document: JSONValue

    var findings: [Finding] {
        var findings: [Finding] = []
        func warn(_ text: String, _ advice: String) { findings.append(.warning("metadata", text, advice)) }
        // A public client does not authenticate, whatever methods the server lists.
        let method = settings.authMethod == .none ? nil : settings.authMethod.rawValue
        for (member, name, own, key) in [
            ("grant_types_supported", "grant", grant, "grant_type"),
            ("token_endpoint_auth_methods_supported", "authentication method", method, "token_endpoint_auth_method"),
        ] {
            guard !hasToken, let own, let listed = list(member), !listed.contains(own) else { continue }
            let shown = listed.isEmpty ? "none" : ForeignText.printable(listed.joined(separator: ", "))
            warn(
                "the server does not list the \(name) \(own); it lists \(shown)",
                "check `\(key)`, and whether the server allows it for this client; some lists are incomplete")
        }
        let plain = Self.endpoints(document).filter { !$0.url.lowercased().hasPrefix("https://") }
        if let first = plain.first {
            let names = plain.map(\.name).joined(separator: ", ")
            let example = ForeignText.printable(first.url, most: 80) + (plain.count > 1 ? ", …" : "")
            let text = "no https:// address: \(names) (\(example))"
            if settings.allowPlaintext {
                findings.append(.good("metadata", text + "; allow_plaintext permits that"))
            } else {
                warn(text, "let the server publish https:// addresses, or write them into the configuration")
            }
        }
        // An address that can't be used is the reason why the configuration has another one.
        if let own = settings.tokenEndpoint, let other = document["token_endpoint"]?.string, own != other,
            !DiscoveryFault.isTemplate(other), settings.allowPlaintext || other.lowercased().hasPrefix("https://")
        {
            warn(
                "the server names a different token_endpoint: \(ForeignText.printable(other))",
                "remove `token_endpoint` from the configuration, unless the difference is intended")
        }
        return findings.isEmpty ? [.good("metadata", "matches the issuer and the settings")] : findings
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
}
