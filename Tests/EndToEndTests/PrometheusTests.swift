import Foundation
import TestSupport
import Testing

@Suite("Prometheus can work with what we give it", .timeLimit(.minutes(2)))
struct PrometheusTests {
    private static let folder = "\(Repository.root)/deploy/observe"

    @Test func `promtool finds nothing wrong with the alerts, the example and the metrics`() async throws {
        for (kind, file) in [("rules", "alerts.yaml"), ("config", "prometheus.yaml")] {
            try await ChildProcess.output(of: ["promtool", "check", kind, "\(Self.folder)/\(file)"])
        }
        let proxy = try await WellProxy()
        try await proxy.use(times: 3)
        let page = try await proxy.metrics()
        let check = try await ChildProcess.run(["promtool", "check", "metrics"], input: Array(page.utf8))
        #expect(check.ending == .exited(0), "\(check.transcript)")
        #expect(check.errors == "")
    }

    @Test func `the alerts fire when they should, and not before`() async throws {
        let fixture = "\(Repository.root)/Tests/EndToEndTests/Fixtures/alerts_test.yaml"
        let alerts = try String(contentsOfFile: "\(Self.folder)/alerts.yaml", encoding: .utf8)
        let cases = try String(contentsOfFile: fixture, encoding: .utf8)
        for match in alerts.matches(of: /alert: ([A-Za-z]+)/) {
            #expect(cases.contains("alertname=\"\(match.1)\""), "\(match.1) has no case in alerts_test.yaml")
        }
        try await ChildProcess.output(of: ["promtool", "test", "rules", fixture])
    }

    @Test func `each panel of the dashboard and each query of docs metrics md is answered with data`() async throws {
        let proxy = try await WellProxy()
        let prometheus = try await Prometheus(scraping: [try await proxy.adminPort])
        let traffic = Task { while !Task.isCancelled { try await proxy.use(times: 5) } }
        defer { traffic.cancel() }
        let panels = try Self.panelQueries()
        #expect(panels.count > 30)
        let exported = Set(PrometheusNames(try await proxy.metrics()).families)
        let documented = try MetricsReference().rows.filter { exported.contains($0.name) }
        #expect(documented.count > 30)
        // Expressions without a result in a healthy proxy are evaluated without their comparison.
        let rows = documented.map { row in (row.name, row.query.replacing(#/ (==|>) [0-9]+$/#, with: "")) }
        for (name, query) in panels + rows {
            do {
                try await eventually("data for \(name): \(query)") {
                    try await prometheus.query(query).contains { !$0.value.isNaN }
                }
            } catch { Issue.record(error) }
        }
        for row in try MetricsReference().rows where !exported.contains(row.name) {
            _ = try await prometheus.query(row.query)
        }
        for expression in try Self.annotationQueries() { _ = try await prometheus.query(expression) }
        traffic.cancel()
        #expect(prometheus.log == "")
    }

    @Test func `alerts fire for a proxy in trouble, and none for one that is well`() async throws {
        let well = try await WellProxy()
        let ill = try await IllProxy()
        let (good, bad, none) = (try await well.adminPort, try await ill.adminPort, try freePort())
        let prometheus = try await Prometheus(scraping: [good, bad, none])
        let traffic = Task { while !Task.isCancelled { try await well.use(times: 5) } }
        defer { traffic.cancel() }
        // A counter's growth needs an earlier sample.
        try await eventually("both are scraped") { try await prometheus.query("heimdallr_build_info").count == 2 }
        try await ill.suffer(seenBy: prometheus)
        let alerts = try await prometheus.alerts()
        #expect(alerts.count > 15)
        let expected = [
            "HeimdallrTokenMissing", "HeimdallrAuthorizationServerFailing", "HeimdallrSignInNeeded",
            "HeimdallrStoreOutOfOrder", "HeimdallrUpstreamErrors", "HeimdallrConnectionsUsedUp",
            "HeimdallrClientsNearLimit", "HeimdallrCertificateEnds", "HeimdallrCertificateEndsSoon",
            "HeimdallrConfigurationRefused", "HeimdallrFileRefused",
        ]
        for (names, port) in [(expected, bad), (["HeimdallrDown"], none)] {
            for name in names {
                let alert = try #require(alerts.first { $0.name == name }, "\(name)")
                do {
                    try await eventually("\(name): \(alert.expression)") {
                        try await prometheus.query(alert.expression).contains {
                            $0.labels["instance"] == "127.0.0.1:\(port)"
                        }
                    }
                } catch { Issue.record(error) }
            }
        }
        for alert in alerts {
            let found = try await prometheus.query(alert.expression)
            #expect(!found.contains { $0.labels["instance"] == "127.0.0.1:\(good)" }, "\(alert.name): \(found)")
        }
        withExtendedLifetime(ill) {}
    }

    // MARK: The dashboard

    private static func dashboard() throws -> [String: Any] {
        let data = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/dashboard.json"))
        return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    /// As Grafana asks them, with all values of its variables.
    private static func asked(_ expression: String) -> String {
        expression.replacing("$__rate_interval", with: "5s").replacing("$job", with: ".*")
            .replacing("$instance", with: ".*")
    }

    private static func panelQueries() throws -> [(String, String)] {
        let panels = try #require(try dashboard()["panels"] as? [[String: Any]])
        return panels.flatMap { panel -> [(String, String)] in
            let targets = panel["targets"] as? [[String: Any]] ?? []
            let title = panel["title"] as? String ?? ""
            #expect(!targets.isEmpty || panel["type"] as? String == "row", "\(title) asks for nothing")
            return targets.compactMap { ($0["expr"] as? String).map { (title, asked($0)) } }
        }
    }

    private static func annotationQueries() throws -> [String] {
        let annotations = try dashboard()["annotations"] as? [String: Any]
        return (annotations?["list"] as? [[String: Any]] ?? []).compactMap { ($0["expr"] as? String).map(asked) }
    }
}

/// Names of the families on a page of metrics that have a sample.
private struct PrometheusNames {
    let families: [String]
    init(_ text: String) {
        families = text.matches(of: #/# TYPE ([a-z_]+) /#).map { String($0.1) }
            .filter { name in ["{", " ", "_bucket{"].contains { text.contains("\n\(name)\($0)") } }
    }
}

/// A proxy whose upstream and token endpoint are served over TLS; tokens last for seconds, so that there are requests
/// for them all the time.
private final class WellProxy: Sendable {
    let proxy: RunningProxy
    private let nginx: Nginx

    init() async throws {
        nginx = try await Nginx.secure(
            locations: """
                location /token { default_type application/json;
                    return 200 '{"access_token": "abc", "token_type": "Bearer", "expires_in": 4}'; }
                location / { return 200 x; }
                """)
        let url = "https://localhost:\(nginx.httpsPort)"
        let tls = "tls: {ca_file: \(nginx.authority.certificateFile)}"
        proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: "\(url)/token", client: tls, admin: "",
                upstreams: ProxyConfiguration.upstream(url: url, tls)))
    }

    var adminPort: UInt16 { get async throws { try await proxy.administration().port } }

    /// Some requests, with and without a body.
    func use(times: Int) async throws {
        for number in 0..<times {
            let body = number % 2 == 0 ? nil : "12345"
            let answer = try await proxy.send(body == nil ? "GET" : "POST", "http://api.test/", body: body)
            guard answer.status == 200 else { throw TestFailure("\(answer.status) \(answer.text)\n\(proxy.log)") }
        }
    }

    func metrics() async throws -> String {
        try await RawClient.exchange(
            port: adminPort, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", method: "GET"
        ).text
    }
}

/// A proxy with everything wrong that can be brought about within seconds.
private final class IllProxy: Sendable {
    let proxy: RunningProxy
    private let nginx: Nginx
    private let failing: TokenEndpoint
    private let short: TokenEndpoint
    private let origin: RecordingOrigin
    private let gate = Gate()
    private let clients = Recorder<RawClient>()

    init() async throws {
        let authority = try await PrivateCA()
        nginx = try await Nginx(
            certificate: try await authority.server(days: 1), locations: "location / { return 200 x; }")
        failing = try TokenEndpoint([.status(503)])
        short = try TokenEndpoint([.token("abc", expiresIn: "2")])
        origin = try RecordingOrigin { [gate] exchange in
            gate.wait()
            try exchange.respond(200, body: "x")
        }
        proxy = try await RunningProxy(
            ProxyConfiguration(
                proxy: "max_connections: 8", admin: "",
                clients: [
                    ProxyConfiguration.client("failing", tokenEndpoint: failing.url),
                    ProxyConfiguration.client("short", tokenEndpoint: short.url),
                    ProxyConfiguration.client(
                        "person", tokenEndpoint: failing.url,
                        "grant_type: authorization_code\nauthorization_endpoint: \(failing.url)"),
                ],
                upstreams: [
                    """
                      - {host: secure.test, url: "https://localhost:\(nginx.httpsPort)", tls: {ca_file: FOLDER/ca.pem}}
                      - {host: failing.test, url: "http://127.0.0.1:1", client: failing, allow_plaintext: true}
                      - {host: person.test, url: "http://127.0.0.1:1", client: person, allow_plaintext: true}
                      - {host: short.test, url: "http://127.0.0.1:1", client: short, allow_plaintext: true}
                      - host: few.test
                        url: \(origin.url)
                        max_connections: 1
                        connect_timeout: 1m
                    """
                ], more: "store: {kind: file, directory: FOLDER/store, key: {file: FOLDER/key}}",
                files: [
                    "ca.pem": try String(contentsOfFile: authority.certificateFile, encoding: .utf8),
                    "key": Data((0..<32).map { UInt8($0) }).base64EncodedString(),
                ]))
    }

    deinit { gate.open() }

    var adminPort: UInt16 { get async throws { try await proxy.administration().port } }

    func suffer(seenBy prometheus: Prometheus) async throws {
        #expect(try await proxy.get("http://secure.test/").status == 200)
        // A counter that begins with its first error grows with the next one.
        try await eventually("errors that grow") {
            #expect(try await self.proxy.get("http://short.test/").status == 502)
            return try await prometheus.query("rate(heimdallr_requests_total{code=\"502\"}[1m]) > 0").count == 1
        }
        // No store any more, but a file in its place.
        let store = proxy.directory.path(of: "store")
        try FileManager.default.removeItem(atPath: store)
        try proxy.directory.write("", to: "store")
        try proxy.directory.write("rubbish", to: "ca.pem")
        try proxy.directory.write("proxy: [", to: "config.yaml")
        let socket = try await proxy.administration().socket
        #expect(try await RunningProxy.run(["reload", "--socket", socket]).ending == .exited(78))
        // All places are taken: two by requests of which one waits for the other's connection, the rest by idle programs.
        for target in ["few.test", "few.test", "", "", "", "", "", ""] {
            let client = try await RawClient.connect(port: proxy.port)
            if !target.isEmpty { try await client.send("GET http://\(target)/ HTTP/1.1\r\nHost: \(target)\r\n\r\n") }
            clients.append(client)
        }
    }
}
