/// Reads the sections that are neither clients nor upstreams.
extension Section {
    /// Upper limit of durations.
    static let day = Duration.seconds(86_400)

    func proxySettings() -> (settings: ProxySettings, listeners: [Listener]) {
        defer { finish() }
        var settings = ProxySettings()
        var listeners: [Listener] = []
        tell("listen", usually: settings.listen.map(\.description).joined(separator: ", "))
        if let found = self.listeners("listen") {
            listeners = found
            if isEmptyList("listen") {
                error("listen", "write at least one address, such as 127.0.0.1:8080")
            }
            if !listeners.isEmpty { settings.listen = listeners.map(\.address) }
            for listener in listeners { settings.listenerTLS[listener.address.endpoint] = listener.tls }
        } else if !has("listen") {
            listeners = Listener.defaults
        }
        read("threads", into: &settings.threads, Grammar.integer(1...256))
        read("open", into: &settings.open, Grammar.boolean)
        settings.users = users()
        read("unmatched", into: &settings.unmatched, Grammar.word)
        read("connect", into: &settings.connect, Grammar.word)
        tunnels(into: &settings)
        read("intercept", into: &settings.intercepts, Grammar.boolean)
        if let blocks = list("private_networks", Grammar.addressBlock) {
            settings.privateNetworks = blocks
        }
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
                error("connect", "a tunnel needs a place to go: list HOST:PORT pairs under `tunnels`, or \"*\" for any")
            }
            if settings.open, settings.users.isEmpty, settings.tunnels.contains(.any) {
                warn(
                    "tunnels", "whoever reaches a listener gets anywhere through it: write `users`, or list the places")
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
        settings.token = secret("token")
        read("quitquitquit", into: &settings.quits, Grammar.boolean)
        return (settings, listener)
    }

    /// The admin addresses alone, by which the command line finds the proxy.
    func adminAddresses() -> AdminSettings {
        var settings = AdminSettings()
        tell("listen", usually: settings.listen.description)
        if let address = value("listen", Self.adminAddress) { settings.listen = address }
        settings.socket = value("socket", Self.socketPath).map(diagnostics.resolve)
        return settings
    }

    private static func adminAddress(_ text: String) throws(Misfit) -> ListenAddress {
        let address = try Grammar.listener(text)
        guard case .tcp = address else {
            throw Misfit("write a host and port such as 127.0.0.1:8081; `socket` says where the Unix socket is")
        }
        return address
    }

    private static func socketPath(_ text: String) throws(Misfit) -> String {
        // sockaddr_un of unix(7) holds 108 bytes, one of them zero.
        guard !text.isEmpty, text.utf8.count <= 107 else { throw Misfit("write a path of at most 107 bytes") }
        return try Grammar.path(text)
    }

    /// The top-level section: additional trust anchors only.
    func trustAnchors() -> String? {
        defer { finish() }
        let file = readableFile("ca_file")
        if let file { note(.trustAnchors(file), at: "ca_file") }
        return file
    }

    /// TLS towards one peer.
    func tlsSettings(serverName: Bool) -> TLSSettings {
        defer { finish() }
        var settings = TLSSettings()
        settings.caFile = readableFile("ca_file")
        settings.certFile = readableFile("cert_file")
        settings.keyFile = readableFile("key_file")
        if let file = settings.caFile { note(.trustAnchors(file), at: "ca_file") }
        if let certificate = settings.certFile, let key = settings.keyFile {
            note(.tls(certificate: certificate, key: key), at: "cert_file")
        }
        if let key = settings.keyFile { warnOfReaders(key, label: label("key_file"), at: position(of: "key_file")) }
        if serverName { settings.serverName = value("server_name", Grammar.hostName) }
        if has("cert_file"), !has("key_file") {
            error("cert_file", "a certificate needs its key: write `key_file` too")
        }
        if has("key_file"), !has("cert_file") {
            error("key_file", "a key needs its certificate: write `cert_file` too")
        }
        return settings
    }

    /// The proxy of one leg.
    func nextProxy(_ key: String, into target: inout NextProxy) {
        tell(key, usually: "none")
        read(key, into: &target, Grammar.nextProxy)
        guard case .url(let url) = target, let userinfo = (try? URLParts(url, example: ""))?.userinfo else { return }
        if userinfo.contains(":"), !isSubstituted(key) {
            warn(key, "a password stands in the configuration: write ${NAME} in its place")
        }
    }

    func readableFile(_ key: String) -> String? {
        guard let written = value(key, Grammar.path) else { return nil }
        let path = diagnostics.resolve(path: written)
        do throws(Misfit) {
            let content = try Files.read(path, limit: 4 << 20)
            guard Self.holdsPEM(content) else {
                throw Misfit("the file is not PEM (it has no -----BEGIN line)", quotes: false)
            }
            return path
        } catch {
            self.error(key, "can't use \(Self.shown(path)): \(error.message)")
            return nil
        }
    }

    private static func holdsPEM(_ content: [UInt8]) -> Bool {
        let marker = Array("-----BEGIN ".utf8)
        guard content.count >= marker.count else { return false }
        return (0...content.count - marker.count).contains { start in
            content[start] == marker[0] && content[start..<start + marker.count].elementsEqual(marker)
        }
    }
}
