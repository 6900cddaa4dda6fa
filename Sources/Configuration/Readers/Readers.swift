// Readers of `proxy`, `log` and `admin`, of TLS settings, the next proxy and PEM files.
import HTTPMessage
import WireText

extension Section {
    /// Upper limit of most durations.
    static let day = Duration.seconds(86_400)

    func proxySettings() -> (settings: ProxySettings, listeners: [Listener]) {
        defer { finish() }
        var settings = ProxySettings()
        tell("listen", usually: settings.listen.map(\.description).joined(separator: ", "))
        let listeners = self.listeners("listen") ?? (has("listen") ? [] : Listener.defaults)
        if isEmptyList("listen") { error("listen", "write at least one address, such as 127.0.0.1:8080") }
        if !listeners.isEmpty { settings.listen = listeners.map(\.address) }
        for listener in listeners { settings.listenerTLS[listener.address.endpoint] = listener.tls }
        read("threads", into: &settings.threads, Grammar.integer(1...256))
        read("open", into: &settings.open, Grammar.boolean)
        settings.users = users()
        read("unmatched", into: &settings.unmatched, Grammar.word)
        read("connect", into: &settings.connect, Grammar.word)
        tunnels(into: &settings)
        read("intercept", into: &settings.intercepts, Grammar.boolean)
        settings.privateNetworks = list("private_networks", Grammar.addressBlock) ?? []
        read("header_timeout", into: &settings.headerTimeout, Grammar.duration(.milliseconds(1)...Self.day))
        read("idle_timeout", into: &settings.idleTimeout, Grammar.duration(.milliseconds(1)...Self.day))
        read("max_header_bytes", into: &settings.maxHeaderBytes, Grammar.size(1024...16 << 20))
        read("max_body_bytes", into: &settings.maxBodyBytes, Grammar.sizeOrOff(0...1 << 50))
        read("max_connections", into: &settings.maxConnections, Grammar.integer(1...1_000_000))
        read("drain_timeout", into: &settings.drainTimeout, Grammar.duration(.zero...Self.day))
        read("drain_delay", into: &settings.drainDelay, Grammar.duration(.zero...Self.day))
        return (settings, listeners)
    }

    private func tunnels(into settings: inout ProxySettings) {
        settings.tunnels = list("tunnels", Grammar.tunnel) ?? []
        switch settings.connect {
        case .reject:
            if !settings.tunnels.isEmpty { warn("tunnels", "this has no effect without `connect: tunnel`") }
        case .tunnel:
            if !has("tunnels") || isEmptyList("tunnels") {
                error("connect", "tunnels need targets: list HOST:PORT pairs under `tunnels`, or \"*\" for any")
            }
            if settings.open, settings.users.isEmpty, settings.tunnels.contains(.any) {
                warn(
                    "tunnels", "clients of a listener can reach any public address: write `users`, or list targets")
            }
        }
    }

    func logSettings() -> LogSettings {
        defer { finish() }
        var settings = LogSettings()
        read("level", into: &settings.level, Grammar.word)
        read("format", into: &settings.format, Grammar.word)
        read("access", into: &settings.access, Grammar.boolean)
        return settings
    }

    func adminSettings() -> (settings: AdminSettings, listener: Listener) {
        defer { finish() }
        var settings = adminAddresses()
        let listener = Listener(
            address: settings.listen, position: position(of: "listen"), name: label("listen"),
            kind: .administration(hasToken: has("token")))
        settings.hosts = list("hosts", Grammar.host) ?? []
        settings.url = value("url", Self.pageURL)
        settings.token = secret("token")
        read("requests", into: &settings.showsRequests, Grammar.boolean)
        read("quitquitquit", into: &settings.quits, Grammar.boolean)
        return (settings, listener)
    }

    /// Reads only the admin addresses, with which the command line finds the proxy.
    func adminAddresses() -> AdminSettings {
        var settings = AdminSettings()
        tell("listen", usually: settings.listen.description)
        if let address = value("listen", Self.adminAddress) { settings.listen = address }
        settings.socket = value("socket", Self.socketPath).map(diagnostics.resolve)
        return settings
    }

    private static func adminAddress(_ text: String) throws(BadValue) -> ListenAddress {
        let address = try Grammar.listener(text)
        guard !address.isUnix else {
            throw BadValue("write a host and port such as 127.0.0.1:8081; a Unix socket's path goes into `socket`")
        }
        return address
    }

    /// The address of the page in people's browsers: https, or http on loopback.
    private static func pageURL(_ text: String) throws(BadValue) -> String {
        let example = "https://proxy.example.com/heimdallr"
        let parts = try WebURL(value: text, example: example, query: "")
        guard parts.scheme == .https || parts.authority.host.isThisMachine else {
            throw BadValue(
                "sessions and codes would cross the network in plain text: write https://, or a loopback address")
        }
        try Grammar.checkSpelling(parts, "scheme and host")
        let path = parts.path.utf8
        guard path.allSatisfy({ ASCII.isAlphanumeric($0) || "-._~/".utf8.contains($0) }), !parts.path.contains("//")
        else {
            throw BadValue("write a path of letters, digits and - . _ ~ only")
        }
        return text.hasSuffix("/") ? String(text.dropLast()) : text
    }

    private static func socketPath(_ text: String) throws(BadValue) -> String {
        // `sockaddr_un` has 108 bytes, including a final zero (unix(7)).
        guard !text.isEmpty, text.utf8.count <= 107 else { throw BadValue("write a path of at most 107 bytes") }
        return try Grammar.path(text)
    }

    /// Reads the top-level section `tls`, which only has additional trust anchors.
    func trustAnchors() -> String? {
        defer { finish() }
        return trustAnchorsFile("ca_file")
    }

    func trustAnchorsFile(_ key: String) -> String? {
        let file = readableFile(key)
        if let file { note(.trustAnchors(file), at: key) }
        return file
    }

    func tlsSettings(serverName: Bool) -> TLSSettings {
        defer { finish() }
        var settings = TLSSettings()
        settings.caFile = trustAnchorsFile("ca_file")
        (settings.certFile, settings.keyFile) = certificate()
        if let certificate = settings.certFile, let key = settings.keyFile {
            note(.tls(certificate: certificate, key: key), at: "cert_file")
        }
        if serverName { settings.serverName = value("server_name", Grammar.hostName) }
        return settings
    }

    /// Reads the files of a certificate and its key. Reports either without the other.
    /// - Parameter prefix: beginning of the names of both settings.
    func certificate(_ prefix: String = "") -> (certificate: String?, key: String?) {
        let (certificateKey, keyKey) = (prefix + "cert_file", prefix + "key_file")
        let certificate = readableFile(certificateKey)
        var key = readableFile(keyKey)
        if let certificate, !has(keyKey) {
            // An X.509-SVID of SPIFFE and its key are often one file.
            if diagnostics.isForPrograms || Files.holdsKey(certificate) {
                key = certificate
            } else {
                error(certificateKey, "a certificate needs its key: write `\(keyKey)` too")
            }
        }
        if let key {
            let name = has(keyKey) ? keyKey : certificateKey
            warnOfReaders(key, label: label(name), at: position(of: name))
        }
        refuse(keyKey, without: certificateKey, saying: "a key needs its certificate: write `\(certificateKey)` too")
        return (certificate, key)
    }

    func readableFile(_ key: String) -> String? {
        guard let written = value(key, Grammar.path) else { return nil }
        let path = diagnostics.resolve(path: written)
        if diagnostics.isForPrograms { return path }
        do throws(BadValue) {
            let content = try Files.read(path, limit: 4 << 20)
            guard content.firstRange(of: Array("-----BEGIN ".utf8)) != nil else {
                throw BadValue("the file is not PEM (it has no -----BEGIN line)", quotes: false)
            }
            return path
        } catch {
            diagnostics.error(
                position(of: key), "\(label(key))can't use \(Self.shown(path)): \(error.message)", awaiting: path)
            return nil
        }
    }
}
