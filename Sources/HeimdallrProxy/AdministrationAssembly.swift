import Administration
import Configuration
import Heimdallr
import Logging
import Proxy
import Reactor

/// Joins the administration to what it administers.
struct AdministrationAssembly {
    private let configuration: Configuration
    private let clients: [String: Heimdallr]
    private let server: ProxyServer

    init(_ configuration: Configuration, clients: [String: Heimdallr], server: ProxyServer) {
        self.configuration = configuration
        self.clients = clients
        self.server = server
    }

    /// `nil` where nobody would read them.
    static func tokenMetrics(_ configuration: Configuration) -> TokenMetrics? {
        guard configuration.admin != nil else { return nil }
        return TokenMetrics(
            clients: configuration.clients.map { (name: $0.name, grantType: $0.grantType.description) })
    }

    /// - Returns: `nil` when the configuration has no admin port.
    /// - Throws: `AdministrationError`
    func start(tokens: TokenMetrics?, logger: Logger) async throws -> Administration? {
        guard let admin = configuration.admin, let tokens, case .tcp(let host, let port) = admin.listen else {
            return nil
        }
        var settings = AdministrationSettings(host: host, port: port)
        settings.socket = admin.socket
        settings.hosts = admin.hosts
        settings.token = admin.token?.provider
        settings.runtimeDirectory = ProcessEnvironment.value(of: "XDG_RUNTIME_DIR")
        // What Hummingbird and NIO tell of themselves below a warning shows our objects from the inside.
        var quiet = logger
        quiet.logLevel = max(logger.logLevel, .warning)
        return try await Administration.start(settings, sources: sources, tokens: tokens, logger: quiet)
    }

    private var sources: AdministrationSources {
        let members = configuration.clients.compactMap { settings in
            clients[settings.name].map {
                AdministrationSources.Client(
                    $0, isUnattended: settings.isUnattended, redirectURI: settings.redirectURI,
                    issuer: settings.issuer ?? settings.tokenEndpoint.map { String($0.prefix { $0 != "?" }) })
            }
        }
        var sources = AdministrationSources(
            version: Version.number, clients: members, pulse: { [server] in await server.pulse() },
            traffic: { [server] in TrafficReport(await server.traffic()) },
            route: { [configuration] method, url in
                RouteReport(RouteExplanation(configuration, method: method, url: url), configuration)
            })
        sources.rules = UpstreamExamples(configuration, addresses: server.addresses.map { $0.description }).rules
        return sources
    }
}

extension ClientSettings {
    /// Gets its tokens without a person.
    var isUnattended: Bool {
        switch grantType {
        case .clientCredentials, .password, .refreshToken, .extension: true
        case .authorizationCode, .implicit, .deviceCode: false
        }
    }
}

extension TrafficReport {
    init(_ traffic: ProxyTraffic) {
        self.init(upstreams: traffic.upstreams.map { Upstream($0) }, inFlight: traffic.inFlight)
    }
}

extension TrafficReport.Upstream {
    init(_ traffic: UpstreamTraffic) {
        self.init(
            name: traffic.name, client: traffic.client,
            durations: Histogram(
                bounds: ProxyTraffic.bounds, counts: traffic.durations, sum: Double(traffic.nanoseconds) / 1e9))
        requests = traffic.requests.enumerated().compactMap { index, count in
            count == 0 ? nil : (code: 100 + index, count: count)
        }
        bytesSent = traffic.bytesSent
        bytesReceived = traffic.bytesReceived
        if traffic.client != nil {
            injections = InjectionResult.allCases.map { (result: $0.name, count: traffic.injections[$0.rawValue]) }
        }
    }
}

extension RouteReport {
    init(_ explanation: RouteExplanation, _ configuration: Configuration) {
        switch explanation {
        case .refused(let status, let detail): self = .refused(status: status, reason: detail)
        case .callers(let some, let others):
            self = .callers(
                some.map { RouteReport($0, configuration) }, others: RouteReport(others, configuration))
        case .unmatched(let destination):
            self = .upstream(rule: "unmatched: forward", destination: destination, client: nil, injection: "")
        case .upstream(let index, let destination):
            let upstream = configuration.upstreams[index]
            var rule = "upstreams[\(index)] \(upstream.host)"
            if !upstream.paths.isEmpty { rule += " paths \(upstream.paths.joined(separator: ", "))" }
            if !upstream.methods.isEmpty { rule += " methods \(upstream.methods.joined(separator: ", "))" }
            if !upstream.callers.isEmpty { rule += " callers \(upstream.callers)" }
            self = .upstream(
                rule: rule, destination: destination, client: upstream.client,
                injection: upstream.client == nil ? "" : upstream.injection.description)
        }
    }
}
