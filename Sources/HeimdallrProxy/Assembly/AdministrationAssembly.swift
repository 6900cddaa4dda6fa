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
    private let lastRequests: [String: LastTokenRequest]
    private let failures: UpstreamFailures

    /// - Parameter lastRequests: of the clients, by name.
    init(
        _ configuration: Configuration, clients: [String: Heimdallr], server: ProxyServer,
        lastRequests: [String: LastTokenRequest], failures: UpstreamFailures
    ) {
        self.configuration = configuration
        self.clients = clients
        self.server = server
        self.lastRequests = lastRequests
        self.failures = failures
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
        return try await Administration.start(settings, sources: sources, tokens: tokens, logger: logger)
    }

    private var sources: AdministrationSources {
        let members = configuration.clients.compactMap { settings in
            clients[settings.name].map {
                var client = AdministrationSources.Client(
                    $0, isUnattended: !settings.needsLogin, redirectURI: settings.redirectURI,
                    issuer: settings.issuer ?? settings.tokenEndpoint.map { String($0.prefix { $0 != "?" }) })
                if let last = lastRequests[settings.name] {
                    client.lastRequest = {
                        AdministrationSources.LastRequest(url: last.current.url, cause: last.current.cause)
                    }
                }
                return client
            }
        }
        var sources = AdministrationSources(
            version: Version.number, clients: members, pulse: { [server] in await server.pulse() },
            traffic: { [server, failures] in
                var report = TrafficReport(await server.traffic())
                for index in report.upstreams.indices {
                    report.upstreams[index].lastFailure = failures.current(report.upstreams[index].name)
                }
                return report
            },
            route: { [configuration, server] method, url in
                RouteReport(server.explain(method: method, url: url), configuration, method: method)
            })
        sources.refusal = { client, error, advice, url in
            let answer = RefusedRequest(error, client: client, signIn: SignInHint(advice: advice, url: url))
            return RefusalReport(status: answer.status, title: answer.title, loginURL: answer.loginURL)
        }
        sources.users = configuration.proxy.users.keys.sorted()
        sources.rules = UpstreamExamples(configuration, addresses: server.addresses.map { $0.description }).rules
        return sources
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
        requests = Self.counts(traffic.requests)
        answeredByProxy = Self.counts(traffic.ownRequests)
        durationsByProxy = Histogram(
            bounds: ProxyTraffic.bounds, counts: traffic.ownDurations, sum: Double(traffic.ownNanoseconds) / 1e9)
        bytesSent = traffic.bytesSent
        bytesReceived = traffic.bytesReceived
        if traffic.client != nil {
            injections = InjectionResult.allCases.map { (result: $0.name, count: traffic.injections[$0.rawValue]) }
        }
    }

    private static func counts(_ requests: [UInt64]) -> [(code: Int, count: UInt64)] {
        requests.enumerated().compactMap { index, count in count == 0 ? nil : (code: 100 + index, count: count) }
    }
}

extension RouteReport {
    init(_ explanation: RouteExplanation, _ configuration: Configuration, method: String) {
        switch explanation {
        case .refused(let status, let detail): self = .refused(status: status, reason: detail)
        case .callers(let some, let others):
            self = .callers(
                some.map { RouteReport($0, configuration, method: method) },
                others: RouteReport(others, configuration, method: method))
        case .unmatched(let destination):
            self = .upstream(rule: "unmatched: forward", destination: destination, client: nil, injection: "")
        case .upstream(let index, let destination):
            self = Self.upstream(configuration.upstreams[index], index, destination, method)
        case .ownListener(let index, let destination):
            self = Self.upstream(
                configuration.upstreams[index], index, destination, method, place: " by its own listener")
        }
    }

    private static func upstream(
        _ upstream: UpstreamSettings, _ index: Int, _ destination: String, _ method: String, place: String = ""
    ) -> RouteReport {
        var rule = "upstreams[\(index)] \(upstream.host)"
        if !upstream.paths.isEmpty { rule += " paths \(upstream.paths.joined(separator: ", "))" }
        if !upstream.methods.isEmpty { rule += " methods \(upstream.methods.joined(separator: ", "))" }
        if !upstream.callers.isEmpty { rule += " callers \(upstream.callers)" }
        let isTrace = method == "TRACE" && upstream.client != nil
        let injection =
            isTrace ? "TRACE carries no token" : upstream.client == nil ? "" : upstream.injection.description
        return .upstream(
            rule: rule + place, destination: destination, client: isTrace ? nil : upstream.client, injection: injection)
    }
}
