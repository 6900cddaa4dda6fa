import HTTPMessage
import WireText

/// Reads one entry of `upstreams`.
struct UpstreamReader {
    /// An upstream, and where its parts stand, for the checks across the whole configuration.
    struct Result {
        var settings: UpstreamSettings
        /// Where the entry stands, as messages about two entries name it.
        var position: Position
        var path: String
        var clientPosition: Position
        var urlPosition: Position
        var listener: Listener?
    }

    private let section: Section
    private var settings: UpstreamSettings

    /// `nil` when there is no usable host: then nothing else can be said about the entry as a whole.
    static func read(_ section: Section) -> Result? {
        let host = section.value("host", Grammar.hostPattern)
        if !section.has("host") {
            section.diagnostics.error(section.position, "\(section.path): `host` is missing: write api.example.com")
        }
        let stand = HostPattern(wildcard: false, host: .name("invalid"), port: nil)
        var reader = UpstreamReader(section: section, settings: UpstreamSettings(host: host ?? stand))
        let listener = reader.readMatching()
        reader.readInjection()
        reader.readDestination(known: host != nil)
        reader.readLimits()
        section.finish()
        guard host != nil else { return nil }
        return Result(
            settings: reader.settings, position: section.position(of: "host"), path: section.path,
            clientPosition: section.position(of: "client"),
            urlPosition: section.position(of: section.has("url") ? "url" : "host"), listener: listener)
    }

    // MARK: Which requests

    private mutating func readMatching() -> Listener? {
        settings.paths = section.list("paths", Grammar.pathPrefix) ?? []
        settings.methods = section.list("methods", Grammar.method) ?? []
        if let callers = section.section("callers") { settings.callers = callers.callers() }
        settings.hosts = section.list("hosts", Grammar.authority) ?? []
        section.read("browsers", into: &settings.browsers, Grammar.boolean)
        let listener = section.listener("listen")
        if section.has("hosts"), !section.has("listen") {
            section.error("hosts", "this is about the upstream's own listener: write `listen` too, or leave it out")
        }
        settings.listen = listener?.address
        return listener
    }

    // MARK: Which token, and how

    private mutating func readInjection() {
        settings.client = section.value("client", Grammar.nonempty)
        section.read("allow_deprecated", into: &settings.allowDeprecated, Grammar.boolean)
        section.read("on_existing", into: &settings.onExisting) { text throws(Misfit) in try Grammar.word(text) }
        section.read("on_unauthorized", into: &settings.onUnauthorized) { text throws(Misfit) in
            try Grammar.word(text)
        }
        section.read("max_replay_bytes", into: &settings.maxReplayBytes, Grammar.size(0...64 << 20))
        section.read("token_wait", into: &settings.tokenWait, Grammar.duration(.zero ... .seconds(3600)))
        if let inject = section.section("inject") {
            if let injection = readInjection(inject) { settings.injection = injection }
            inject.finish()
        }
        for key in ["inject", "on_existing", "token_wait"] where section.has(key) && !section.has("client") {
            section.error(key, "this is about the token: write `client` too, or leave it out")
        }
    }

    private func readInjection(_ inject: Section) -> UpstreamSettings.Injection? {
        let header = inject.value("header", Self.injectedHeader)
        let scheme = inject.value("scheme") { text throws(Misfit) in
            guard text.isEmpty || ASCII.isToken(text) else {
                throw Misfit("write a scheme such as Bearer, or \"\" for the bare token")
            }
            return text
        }
        let query = inject.value("query") { text throws(Misfit) in
            guard !text.isEmpty, text.utf8.allSatisfy({ ASCII.isAlphanumeric($0) || "-._~".utf8.contains($0) })
            else { throw Misfit("write a parameter name such as access_token") }
            return text
        }
        guard inject.has("query") else {
            guard !inject.has("header") || header != nil, !inject.has("scheme") || scheme != nil else { return nil }
            return .header(name: header ?? "Authorization", scheme: scheme ?? "Bearer")
        }
        for key in ["header", "scheme"] where inject.has(key) {
            inject.error(key, "a token goes into a header or into the query, not both: leave this or `query` out")
        }
        if !settings.allowDeprecated {
            inject.error(
                "query",
                "a token in the query ends up in logs (RFC 9700, section 4.3.2): inject a header, or write "
                    + "`allow_deprecated: true` at this upstream")
        }
        return query.map { .query(name: $0) }
    }

    /// Fields that carry the connection or the message's framing: a token has no business there.
    private static let unfitHeaders = [
        "host", "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
        "trailer", "transfer-encoding", "upgrade", "content-length", "content-type", "content-encoding", "expect",
        "via", "date", "range",
    ]

    private static func injectedHeader(_ text: String) throws(Misfit) -> String {
        let name = try Grammar.headerName(text)
        guard !unfitHeaders.contains(name.lowercased()) else {
            throw Misfit("write a header that can carry a token, such as Authorization or X-Api-Key")
        }
        return name
    }

    // MARK: Where they go

    private mutating func readDestination(known: Bool) {
        section.read("allow_plaintext", into: &settings.allowPlaintext, Grammar.boolean)
        settings.url = section.value("url", Grammar.upstreamURL)
        section.nextProxy("proxy", into: &settings.proxy)
        if let tls = section.section("tls") { settings.tls = tls.tlsSettings(serverName: true) }
        readRewriting()
        guard known else { return }
        if let url = settings.url {
            if url.scheme == .http, section.has("client"), !settings.allowPlaintext {
                section.error(
                    "url",
                    "the token would cross the network in plain text: write https://, or "
                        + "\(section.spelling(of: "allow_plaintext", as: "true")) if that is meant")
            }
        } else if !section.has("url") {
            setDefaultURL()
        }
        if settings.host.wildcard, section.has("client"), !settings.host.host.description.contains(".") {
            section.warn("host", "every host under .\(settings.host.host) gets this client's token")
        }
    }

    /// `true`, `false`, or `{host: keep}`.
    private mutating func readRewriting() {
        guard let node = section.node("rewrite") else { return }
        guard case .mapping = node.content else {
            settings.rewrite =
                section.value(of: node, "rewrite") { text throws(Misfit) in
                    do throws(Misfit) { return try Grammar.boolean(text) } catch {
                        throw Misfit("write true, false, or {host: keep}")
                    }
                } ?? true
            return
        }
        guard let rewrite = section.section("rewrite") else { return }
        var host = HostField.upstream
        rewrite.read("host", into: &host) { text throws(Misfit) in try Grammar.word(text) }
        settings.keepsHost = host == .keep
        rewrite.finish()
        if settings.keepsHost, settings.url?.scheme == .http, case .url = settings.proxy {
            rewrite.error(
                "host",
                "a proxy in between is asked for the whole http:// URL, and Host has to say the same: write an https:// "
                    + "`url`, or leave `proxy` or this out")
        }
    }

    private enum HostField: String, CaseIterable { case upstream, keep }

    private mutating func setDefaultURL() {
        let host = settings.host
        if host.port == 80 {
            section.error(
                "host",
                "this would go to https:// on port 80: leave the port out (80 and 443 match then), or write `url`")
        } else if !host.wildcard {
            let port = host.port == 443 ? nil : host.port
            settings.url = .init(scheme: .https, authority: .init(host: host.host, port: port), path: "")
        }
    }

    // MARK: Limits

    private mutating func readLimits() {
        let times = Duration.milliseconds(1)...Section.day
        section.read("connect_timeout", into: &settings.connectTimeout, Grammar.duration(times))
        section.read("response_timeout", into: &settings.responseTimeout, Grammar.durationOrOff(times))
        section.read("idle_timeout", into: &settings.idleTimeout, Grammar.durationOrOff(times))
        section.read("max_connections", into: &settings.maxConnections, Grammar.integer(1...65535))
        section.read(
            "max_connection_age", into: &settings.maxConnectionAge, Grammar.duration(.seconds(1)...Section.day))
        section.read("http2", into: &settings.http2, Grammar.boolean)
    }
}
