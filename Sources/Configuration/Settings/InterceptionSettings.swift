import HTTPMessage

/// Settings of the certificate authorities for intercepted hosts.
public struct InterceptionSettings: Sendable, Equatable {
    /// Storage of the authorities. With it, programs still trust the proxy's certificates after a restart.
    public struct Store: Sendable, Equatable {
        public var directory: String
        /// Key that encrypts the private keys.
        public var key: SecretSource
    }

    /// `nil` for storage in memory.
    public var store: Store?
    /// Domains in lower case. The root certificate covers all hosts in them, so new hosts need no new root.
    public var permit: [String] = []
}

extension Section {
    /// Limit of `permit`. Some clients refuse an authority's certificate with many more domains.
    private static let maxDomains = 900

    func interceptionSettings() -> InterceptionSettings {
        defer { finish() }
        var settings = InterceptionSettings()
        settings.permit = list("permit", Self.domain) ?? []
        if settings.permit.count > Self.maxDomains {
            error("permit", "programs accept at most \(Self.maxDomains) domains: replace several by their parent")
        }
        for domain in settings.permit where !domain.contains(".") {
            warn("permit", "the proxy keeps a key that signs for every host under .\(domain)")
        }
        let directory = value("directory", Grammar.path).map(diagnostics.resolve)
        let key = secret("key")
        guard has("directory"), has("key") else {
            if has("directory") || has("key") || !has("permit") {
                diagnostics.error(
                    position,
                    "\(path): write `directory` and `key` to keep the certificates, or `permit`, or leave `interception` out"
                )
            }
            return settings
        }
        guard let directory, let key else { return settings }
        checkStoreKey(key)
        settings.store = InterceptionSettings.Store(directory: directory, key: key)
        return settings
    }

    private static func domain(_ text: String) throws(BadValue) -> String {
        guard !text.contains("*"), let host = try? Grammar.host(text), case .name(let name) = host else {
            throw BadValue("write a domain such as example.com; it includes the hosts below it")
        }
        return name
    }

    /// Reads `server_cert_file` and `server_key_file` of an upstream's `tls`.
    func serverCertificate(for upstream: UpstreamSettings) -> ListenerTLS? {
        let (certificate, key) = self.certificate("server_")
        guard has("server_cert_file") || has("server_key_file") else { return nil }
        if !upstream.intercepts {
            error(
                "server_cert_file",
                "this applies to intercepted TLS: write `intercept: true` too, or leave it out")
        }
        guard let certificate, let key else { return nil }
        // Any host below a wildcard's domain.
        let host = (upstream.host.wildcard ? "any." : "") + upstream.host.host.bare
        note(.server(certificate: certificate, key: key, host: host), at: "server_cert_file")
        return ListenerTLS(certFile: certificate, keyFile: key)
    }
}
