import Foundation
import TestSupport
import Testing

@Suite("connections and certificates are seen", .timeLimit(.minutes(2)))
struct ConnectionMetricsTests {
    private func metrics(of admin: AdministeredProxy) async throws -> PrometheusReader {
        let page = PrometheusReader(try await admin.get("/metrics").text)
        #expect(page.problems == [])
        return page
    }

    @Test func `connections that are open, used, idle, awaited, made and used again are counted`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin { exchange in
            if exchange.head.target == "/held" { gate.wait() }
            try exchange.respond(200, body: "x")
        }
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]),
            more: """
                  - {host: few.test, url: "\(origin.url)", client: api, allow_plaintext: true, max_connections: 2}
                """)
        try await admin.ready()
        let few = ["upstream": "few.test"]
        let before = try await metrics(of: admin)
        for name in ["open", "idle", "in_use", "opened_total", "reused_total", "limit"] {
            #expect(before.value("heimdallr_upstream_connections_\(name)", few) == nil, "\(name)")
        }
        #expect(before.value("heimdallr_upstream_connections_open", ["upstream": "(none)"]) == nil)
        for _ in 0..<3 { #expect(try await admin.proxy.get("http://few.test/").status == 200) }
        try await eventually("it is idle") {
            try await metrics(of: admin).value("heimdallr_upstream_connections_idle", few) == 1
        }
        let after = try await metrics(of: admin)
        #expect(after.value("heimdallr_upstream_connections_opened_total", few) == 1)
        #expect(after.value("heimdallr_upstream_connections_reused_total", few) == 2)
        #expect(after.value("heimdallr_upstream_connections_limit", few) == 2)
        #expect(after.value("heimdallr_upstream_connections_opened_total", ["upstream": "api.test"]) == nil)

        let held = Task {
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<3 { group.addTask { try await admin.proxy.get("http://few.test/held").status } }
                var statuses: [Int] = []
                for try await status in group { statuses.append(status) }
                return statuses
            }
        }
        try await eventually("one waits", within: .seconds(4)) {
            let page = try await metrics(of: admin)
            return page.value("heimdallr_upstream_waiters", few) == 1
                && page.value("heimdallr_upstream_connections_in_use", few) == 2
                && page.value("heimdallr_upstream_connections_open", few) == 2
                && page.value("heimdallr_upstream_connections_idle", few) == 0
        }
        gate.open()
        #expect(try await held.value == [200, 200, 200])
        try await eventually("nobody waits") {
            try await metrics(of: admin).value("heimdallr_upstream_waiters", few) == 0
        }
    }

    @Test func `counters of connections live through a reload`() async throws {
        let admin = try await AdministeredProxy()
        try await admin.ready()
        let api = ["upstream": "api.test"]
        for _ in 0..<2 { #expect(try await admin.proxy.get("http://api.test/").status == 200) }
        let file = admin.proxy.directory.path(of: "config.yaml")
        let text = try String(contentsOfFile: file, encoding: .utf8)
        // Other settings mean other connections.
        try admin.proxy.directory.write(
            text.replacing("- host: api.test\n", with: "- host: api.test\n    connect_timeout: 4s\n"), to: "config.yaml"
        )
        #expect(try await admin.run("reload").ending == .exited(0))
        #expect(try await admin.proxy.get("http://api.test/").status == 200)
        let page = try await metrics(of: admin)
        #expect(page.value("heimdallr_upstream_connections_opened_total", api) == 2)
        #expect(page.value("heimdallr_upstream_connections_reused_total", api) == 1)
    }

    @Test func `the metrics tell the ends of certificates, ours and the servers'`() async throws {
        let authority = try await PrivateCA(days: 40)
        let ours = try await authority.client()
        let nginx = try await Nginx(
            certificate: try await authority.server(days: 5), clientCA: authority.certificateFile,
            locations: """
                location /token { default_type application/json;
                    return 200 '{"access_token": "\(accessToken)", "token_type": "Bearer", "expires_in": 3600}'; }
                location / { return 200 x; }
                """)
        let tls = """
            tls: {ca_file: \(authority.certificateFile), cert_file: \(ours.certificateFile), key_file: \(ours.keyFile)}
            """
        let secure = "https://localhost:\(nginx.httpsPort)"
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                admin: "",
                clients: [
                    ProxyConfiguration.client(
                        "mutual", tokenEndpoint: "\(secure)/token",
                        "client_id: us\ntoken_endpoint_auth_method: tls_client_auth\n\(tls)")
                ],
                upstreams: [
                    ProxyConfiguration.upstream("secure.test", url: secure, tls)
                        .replacing("client: api", with: "client: mutual"),
                    "  - {host: never.test, url: \"\(secure)\"}",
                ]))
        #expect(try await proxy.get("http://secure.test/").status == 200)
        let port = try await proxy.administration().port
        let text = try await RawClient.exchange(
            port: port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", method: "GET"
        ).text
        let page = PrometheusReader(text)
        let expected: [(kind: String, name: String, days: Double)] = [
            ("client_certificate", ours.certificateFile, 90), ("trust_anchors", authority.certificateFile, 40),
            ("upstream", "secure.test", 5), ("authorization_server", "mutual", 5),
        ]
        let name = "heimdallr_certificate_expiry_timestamp_seconds"
        for (kind, whose, days) in expected {
            let end = try #require(page.value(name, ["kind": kind, "name": whose]), "\(kind)")
            #expect(abs(end - Date().timeIntervalSince1970 - days * 86_400) < 3600, "\(kind)")
        }
        #expect(page.samples.keys.count { $0.name == name } == expected.count)
    }

    @Test func `the metric of trust anchors tells the one that ends next`() async throws {
        let next = try await PrivateCA(days: 20)
        let last = try await PrivateCA(days: 300)
        let ended = try await last.server(days: -1)
        let bundle = try [last.certificateFile, ended.certificateFile, next.certificateFile].map {
            try String(contentsOfFile: $0, encoding: .utf8)
        }
        let folder = try TemporaryDirectory()
        let file = try folder.write(bundle.joined(), to: "bundle.pem")
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]), upstream: "tls: {ca_file: \(file)}")
        let end = try await metrics(of: admin).value(
            "heimdallr_certificate_expiry_timestamp_seconds", ["kind": "trust_anchors", "name": file])
        #expect(abs(try #require(end) - Date().timeIntervalSince1970 - 20 * 86_400) < 3600)
    }

    @Test func `the metrics tell a client's state and its store`() async throws {
        let admin = try await AdministeredProxy(TokenEndpoint([.status(503)]))
        let name = "heimdallr_client_state"
        let page = try await eventually("it backs off") {
            let page = try await metrics(of: admin)
            return page.value(name, ["client": "api", "state": "backing_off"]) == 1 ? page : nil
        }
        let states = page.samples.filter { $0.key.name == name }
        #expect(states.count == 7)
        #expect(states.values.reduce(0, +) == 1)
        #expect(page.value("heimdallr_store_good", ["client": "api"]) == 1)
    }
}
