import Administration
import Configuration
import Cryptography
import CurlTransport
import Heimdallr
import Logging
import Proxy
import Reactor
import Reports

/// Connects the administration with the objects that it shows and controls.
struct AdministrationAssembly {
    let configuration: Configuration
    let clients: [KeptClient]
    let server: ProxyServer
    let failures: UpstreamFailures
    let secrets: SecretCache
    let tls: TLSFileCache
    let reloads: ReloadCounts
    let logLevel: LogLevelControl
    let audit: @Sendable () -> AuditCounts?
    /// Counts of spans; `nil` without tracing.
    let spans: @Sendable () -> SpanReport?
    /// Reads the configuration again.
    let reload: @Sendable () async -> ReloadAnswer
    /// Stops the proxy.
    let quit: @Sendable () -> Void
    /// Logins that are shared with other processes.
    var pendingLogins: (any PendingLoginStore)?
    var freshness: ConfigurationFreshness?

    /// `nil` without an admin port, which shows them.
    static func tokenMetrics(_ configuration: Configuration) -> TokenMetrics? {
        guard configuration.admin != nil else { return nil }
        return TokenMetrics(
            clients: configuration.clients.map { (name: $0.name, grantType: $0.grantType.description) })
    }

    /// - Returns: `nil` when the configuration has no admin port.
    func start(tokens: TokenMetrics?, passed: [PassedSocket], logger: Logger) async throws -> Administration? {
        guard let admin = configuration.admin, let tokens, var settings = Self.addresses(configuration, passed) else {
            return nil
        }
        settings.hosts = admin.hosts
        settings.pendingLogins = pendingLogins
        settings.token = admin.token.map { AdminTokenRule.guarding(secrets.accessSecret($0)) }
        settings.runtimeDirectory = ProcessEnvironment.value(of: "XDG_RUNTIME_DIR")
        return try await Administration.start(settings, sources: sources, tokens: tokens, logger: logger)
    }

    /// Only the addresses of its listeners.
    static func addresses(_ configuration: Configuration, _ passed: [PassedSocket]) -> AdministrationSettings? {
        guard let admin = configuration.admin, case .tcp(let host, let port) = admin.listen else { return nil }
        var settings = AdministrationSettings(host: host, port: port)
        settings.socket = admin.socket
        settings.passed = PassedSockets(passed)
        settings.passedNames = (Configuration.adminName, Configuration.adminSocketName)
        return settings
    }

    var sources: AdministrationSources {
        let members = clients.map { kept in
            let settings = kept.settings
            var client = AdministrationSources.Client(
                kept.heimdallr, isUnattended: !settings.needsLogin, redirectURI: settings.redirectURI,
                issuer: settings.issuer)
            client.tokenEndpoint = settings.tokenEndpoint.map { String($0.prefix { $0 != "?" }) }
            client.lastRequest = { [notes = kept.notes] in notes.current }
            return client
        }
        var sources = AdministrationSources(
            version: Version.number, clients: members, pulse: { [server] in await server.pulse() },
            traffic: { [server, failures] in
                var report = await server.traffic()
                for index in report.upstreams.indices {
                    report.upstreams[index].lastFailure = failures.current(report.upstreams[index].name)
                }
                return report
            },
            route: { [server] method, url in server.explain(method: method, url: url) })
        sources.refusal = { client, error, signIn in TokenRefusal(error, client: client, signIn: signIn) }
        sources.nearest = { Suggestion.nearest(to: $0, among: $1) }
        sources.certificates = { [tls, clients] in
            tls.certificateEnds(at: WallClock.now())
                + clients.compactMap { client in
                    client.connections.certificateEnd.map {
                        CertificateEnd(.authorizationServer, client.settings.name, at: $0)
                    }
                }
        }
        sources.reloads = reloads
        sources.reload = reload
        if let freshness {
            sources.hasConfigurationChanged = { await BlockingWork.run { freshness.hasChanged() } }
        }
        sources.audit = audit
        sources.quit = configuration.admin?.quits == true ? quit : nil
        sources.logLevel = { [logLevel] in logLevel.answer($0) }
        sources.spans = spans
        sources.users = configuration.proxy.users.keys.sorted()
        sources.rules = UpstreamExamples(configuration, addresses: server.addresses.map { $0.description }).rules
        return sources
    }
}
