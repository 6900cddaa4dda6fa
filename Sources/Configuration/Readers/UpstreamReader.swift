import HTTPMessage
import WireText

/// Reads an entry of `upstreams`.
struct UpstreamReader {
    /// An upstream and the positions of its keys, for the checks across sections.
    struct Result {
        let settings: UpstreamSettings
        let section: Section
        let listener: Listener?
        let auto: ClientSettings?

        var path: String { section.path }
        /// Position of `host`, for messages about the entry as a whole.
        var position: Position { section.position(of: "host") }
        var clientPosition: Position { section.position(of: "client") }
        var urlPosition: Position { section.position(of: section.has("url") ? "url" : "host") }
    }

    private let section: Section
    private var settings: UpstreamSettings
    private var auto: ClientSettings?

    /// - Parameter intercepts: value of `proxy.intercept`.
    /// - Returns: `nil` without a usable host, because further checks of the entry would make no sense.
    static func read(_ section: Section, intercepts: Bool = false) -> Result? {
        let host = section.value("host", Grammar.hostPattern)
        section.need("host", saying: "\(section.path): `host` is missing: write api.example.com")
        let placeholder = HostPattern(wildcard: false, host: .name("invalid"), port: nil)
        var reader = UpstreamReader(section: section, settings: UpstreamSettings(host: host ?? placeholder))
        // For a wildcard, the proxy has to keep a signing key, so `proxy.intercept` does not apply to wildcards.
        let usually = intercepts && !reader.settings.host.wildcard
        reader.settings.intercepts = section.value("intercept", Grammar.boolean) ?? usually
        let listener = reader.readMatching()
        reader.readInjection()
        reader.settings.issue = IssueReader.read(section)
        reader.readHeaders()
        reader.readDestination(known: host != nil)
        reader.readLimits()
        reader.readAuto()
        section.finish()
        guard host != nil else { return nil }
        return Result(settings: reader.settings, section: section, listener: listener, auto: reader.auto)
    }

    // MARK: Matching

    private mutating func readMatching() -> Listener? {
        settings.paths = section.list("paths", Grammar.pathPrefix) ?? []
        settings.methods = section.list("methods", Grammar.method) ?? []
        settings.fields = Self.readFields(section, "fields")
        if let callers = section.section("callers") { settings.callers = callers.callers() }
        settings.hosts = section.list("hosts", Grammar.authority) ?? []
        section.read("browsers", into: &settings.browsers, Grammar.boolean)
        section.read("via", into: &settings.addsVia, Grammar.boolean)
        let listener = section.listener("listen")
        section.refuse(
            "hosts", without: "listen",
            saying: "this applies to the upstream's own listener: write `listen` too, or leave it out")
        settings.listen = listener?.address
        settings.listenerTLS = listener?.tls
        return listener
    }

    /// Reads `token_rejected`, such as `{status: 403, header: {X-Reason: "token*"}}`.
    private func readTokenRejection() -> TokenRejection? {
        guard let inner = section.section("token_rejected") else { return nil }
        defer { inner.finish() }
        let statuses = inner.list("status", Grammar.integer(400...499)) ?? []
        inner.need("status", saying: "\(inner.path): write the `status` of answers that reject the token")
        return TokenRejection(statuses: statuses, fields: Self.readFields(inner, "header"))
    }

    /// Reads `fields`, such as `{Mcp-Name: [get_*]}`.
    private static func readFields(_ section: Section, _ key: String) -> [FieldRule] {
        section.mapping(
            key, to: "values", .oneOrMore(.value(of: Self.fieldPattern)), name: Self.header
        ) { entry, inner in inner.list(entry.key, Self.fieldPattern) }
        .map { FieldRule(name: $0.name.lowercased(), patterns: $0.value) }
    }

    private static func fieldPattern(_ text: String) throws(BadValue) -> String {
        let pattern = try Grammar.printable(text)
        return try Grammar.checked(pattern, !pattern.dropLast().contains("*"), BadValue("write * at the end only"))
    }

    // MARK: Injection

    private mutating func readInjection() {
        settings.client = section.value("client", Grammar.nonempty)
        section.read("allow_deprecated", into: &settings.allowDeprecated, Grammar.boolean)
        section.read("on_existing", into: &settings.onExisting, Grammar.word)
        section.read("on_unauthorized", into: &settings.onUnauthorized, Grammar.word)
        settings.tokenRejected = readTokenRejection()
        section.read("max_replay_bytes", into: &settings.maxReplayBytes, Grammar.size(0...64 << 20))
        section.read("token_wait", into: &settings.tokenWait, Grammar.duration(.zero ... .seconds(3600)))
        settings.placeholder = section.value("require_placeholder", InjectionReader.placeholder)
        settings.injections = InjectionReader(section, settings).read()
        for key in ["on_existing", "require_placeholder"] where section.has(key) && !section.has("inject") {
            section.refuse(
                key, without: "client",
                saying: "this applies to injected credentials: write `client` or `inject` too, or leave it out")
        }
        for key in ["token_wait", "token_rejected"] {
            section.refuse(
                key, without: "client", saying: "this applies to tokens: write `client` too, or leave it out")
        }
    }

    // MARK: Other fields

    private mutating func readHeaders() {
        settings.setHeaders = section.pairs("set_headers", name: Self.header, value: Grammar.headerValue)
        settings.removeHeaders = section.list("remove_headers", Self.header) ?? []
        let names =
            settings.setHeaders.map { ("set_headers", $0.name) } + settings.removeHeaders.map { ("remove_headers", $0) }
        var known = settings.injections.reduce(into: [:]) { known, entry in
            for field in entry.fields { known[field] = "inject" }
        }
        for (key, name) in names {
            let field = Grammar.normalized(field: name)
            if let other = known[field] { section.error(key, "\(name) is already in `\(other)`: name it only once") }
            known[field] = key
        }
    }

    private static let credentials = Grammar.normalized(fields: ["authorization", "cookie", "dpop"])
    private static let framing = Grammar.normalized(fields: Grammar.framingFields)

    private static func header(_ text: String) throws(BadValue) -> String {
        let name = try Grammar.headerName(text)
        let field = Grammar.normalized(field: name)
        if credentials.contains(field) {
            throw BadValue(
                "\"\(name)\" carries credentials: use `inject` and `on_existing` instead", quotes: false)
        }
        guard !framing.contains(field) else {
            throw BadValue(
                "\"\(name)\" belongs to the connection, which the proxy manages: leave it out", quotes: false)
        }
        return name
    }

    // MARK: Destination

    private mutating func readDestination(known: Bool) {
        section.read("allow_plaintext", into: &settings.allowPlaintext, Grammar.boolean)
        settings.url = section.value("url", Grammar.upstreamURL)
        section.nextProxy("proxy", into: &settings.proxy)
        if let tls = section.section("tls") {
            settings.serverCertificate = tls.serverCertificate(for: settings)
            settings.tls = tls.tlsSettings(serverName: true)
        }
        if settings.intercepts, isForTopLevel, settings.serverCertificate == nil {
            section.warn("intercept", "the proxy keeps a key that signs for every host under .\(settings.host.host)")
        }
        readRewriting()
        guard known else { return }
        let hasClient = section.has("client")
        let signs = hasClient || settings.injects
        if settings.url?.scheme == .http, signs, !settings.allowPlaintext {
            section.refusePlaintext(
                "url", "the \(hasClient ? "token" : "secret") would cross the network in plain text")
        }
        if !section.has("url") { setDefaultURL() }
        if signs, isForTopLevel {
            let what = hasClient ? "this client's token" : "what is injected here"
            section.warn("host", "every host under .\(settings.host.host) gets \(what)")
        }
    }

    /// Whether the host is a wildcard directly below a top-level domain: `*.com`.
    private var isForTopLevel: Bool { settings.host.wildcard && !settings.host.host.description.contains(".") }

    /// Reads `rewrite`: `true`, `false`, or `{host: keep}`.
    private mutating func readRewriting() {
        let found = section.either("rewrite") { text throws(BadValue) in
            do throws(BadValue) { return (rewrite: try Grammar.boolean(text), keepsHost: false) } catch {
                throw BadValue("write true, false, or {host: keep}", fits: .boolean)
            }
        } or: { rewrite in
            defer { rewrite.finish() }
            var host = HostField.upstream
            rewrite.read("host", into: &host, Grammar.word)
            if host == .keep, settings.url?.scheme == .http, case .url(_, let login) = settings.proxy,
                !login.answersChallenges
            {
                rewrite.error(
                    "host",
                    "the next proxy gets the whole http:// URL, and Host must name the same host: write an "
                        + "https:// `url`, or leave `proxy` or this out")
            }
            return (rewrite: true, keepsHost: host == .keep)
        }
        section.tell("rewrite", usually: true)
        if let found { (settings.rewrite, settings.keepsHost) = found }
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

    // MARK: client: auto

    private mutating func readAuto() {
        let inner = section.section(AutoReader.word)
        guard settings.client == AutoReader.word || section.outline != nil else {
            if inner != nil {
                section.error(AutoReader.word, "this applies to `client: auto`: write that, or leave it out")
            }
            return
        }
        if settings.host.wildcard {
            section.error("client", "`auto` is for one API: write its exact host in place of \(settings.host)")
        }
        let empty = Section([], path: "", pattern: "", at: .whole, section.diagnostics)
        let (client, discovery) = AutoReader.read(inner ?? empty, settings)
        settings.client = client.name
        settings.hidesDiscovery = discovery == .hide
        auto = client
    }

    // MARK: Limits

    private mutating func readLimits() {
        let times = Duration.milliseconds(1)...Section.day
        section.read("connect_timeout", into: &settings.connectTimeout, Grammar.duration(times))
        section.read("response_timeout", into: &settings.responseTimeout, Grammar.durationOrOff(times))
        section.read("idle_timeout", into: &settings.idleTimeout, Grammar.durationOrOff(times))
        if section.has("response_timeout") { settings.callResponseTimeout = settings.responseTimeout }
        if section.has("idle_timeout") { settings.callIdleTimeout = settings.idleTimeout }
        section.read("max_connections", into: &settings.maxConnections, Grammar.integer(1...65535))
        section.read(
            "max_connection_age", into: &settings.maxConnectionAge, Grammar.duration(.seconds(1)...Section.day))
        section.read("http2", into: &settings.http2, HTTP2Use.init(text:))
    }
}
