import Administration
import Configuration
import CurlTransport
import Cryptography
import HTTPMessage
import Heimdallr
import Proxy
import Reactor
import Reports
import WireText

/// Connects the administration with the objects that it shows and controls.
struct AdministrationAssembly {
    let shared: SharedObjects
    let configuration: Configuration
    let clients: [RunningClient]
    let server: ProxyServer

    /// - Returns: `nil` if the configuration has no admin port.
    func start(passed: [PassedSocket]) async throws -> Administration? {
        guard let admin = configuration.admin, let tokens = shared.tokens,
            var settings = Self.addresses(configuration, passed)
        else { return nil }
        settings.hosts = admin.hosts
        settings.url = admin.url
        settings.pendingLogins = shared.stores.pendingLogins
        settings.token = admin.token.map { AdminTokenRule.guarding(shared.secrets.accessSecret($0)) }
        settings.runtimeDirectory = ProcessEnvironment.value(of: "XDG_RUNTIME_DIR")
        return try await Administration.start(settings, sources: sources, tokens: tokens, logger: shared.logger)
    }

    /// Returns settings with only the addresses of the admin listeners.
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
            client.isExportable = settings.isExportable
            client.file = { [file = kept.file] in file?.report }
            client.tokenEndpoint = settings.tokenEndpoint.map { String($0.prefix { $0 != "?" }) }
            client.lastRequest = { [notes = kept.notes, heimdallr = kept.heimdallr] in
                notes.last(of: heimdallr.status().lastError)
            }
            return client
        }
        var sources = AdministrationSources(
            version: Product.version, clients: members, pulse: { [server] in await server.pulse() },
            traffic: { [server, failures = shared.watch.failures] in
                var report = await server.traffic()
                for index in report.upstreams.indices {
                    report.upstreams[index].lastFailure = failures.current(report.upstreams[index].name)
                }
                return report
            },
            route: { [server] in server.explain(method: $0, url: $1, fields: $2) })
        if configuration.admin?.showsRequests == true {
            sources.requests = { [server] in await server.recentRequests(after: $0) }
        }
        sources.exported = shared.exported
        sources.servesOneProgram = shared.app.isForOneProgram
        sources.refusal = { client, error, signIn in TokenRefusal(error, client: client, signIn: signIn) }
        sources.nearest = { Suggestion.nearest(to: $0, among: $1) }
        sources.certificates = { [files = shared.files, clients] in
            files.certificateEnds(at: WallClock.now())
                + clients.compactMap { client in
                    client.connections.certificateEnd.map {
                        CertificateEnd(.authorizationServer, client.settings.name, at: $0)
                    }
                }
        }
        sources.reloads = shared.reloads
        sources.reload = { [queue = shared.reloadQueue] in await queue.reload() }
        if let freshness = shared.app.freshness {
            sources.hasConfigurationChanged = { await BlockingWork.run { freshness.hasChanged() } }
        }
        sources.unusedFiles = { [files = shared.files] in await BlockingWork.run { files.unused } }
        sources.untrusting = { [programs = shared.watch.untrusting] in programs.current }
        sources.log = { [writer = shared.app.log.writer] in writer.counts }
        sources.storeFault = shared.stores.fault
        sources.audit = { [audit = shared.audit] in audit.counts }
        sources.quit = configuration.admin?.quits == true ? shared.app.quit : nil
        sources.logLevel = { [log = shared.app.log] in log.level.answer($0, log.logger) }
        sources.spans = { [traces = shared.traces] in traces.report }
        sources.users = configuration.proxy.users.keys.sorted()
        sources.rules = UpstreamExamples(configuration, addresses: server.addresses.map { $0.description }).rules
        return sources
    }
}

extension Administration {
    /// All addresses of the admin port. Blocks while a name is resolved.
    var listenAddresses: [SocketAddress] {
        guard let own = try? Authority(parsing: address), let port = own.port else { return [] }
        if let numeric = SocketAddress(numericHost: own.host.bare, port: port) { return [numeric] }
        return (try? SocketAddress.resolve(host: own.host.bare, port: port)) ?? []
    }
}
