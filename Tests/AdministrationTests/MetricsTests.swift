import Foundation
import Reports
import TestSupport
import Testing

@testable import Administration
@testable import Heimdallr

@Suite("metrics", .timeLimit(.minutes(2)))
struct MetricsTests {
    @Test func `every line is in the Prometheus format, and the counts are what happened`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]), upstream: "on_existing: keep",
            more: "  - {host: down.test, url: \"http://127.0.0.1:1\", allow_plaintext: true}")
        try await admin.ready()
        for _ in 0..<3 { #expect(try await admin.proxy.get("http://api.test/a").status == 200) }
        #expect(try await admin.proxy.get("http://api.test/", fields: [("Authorization", "own")]).status == 200)
        #expect(try await admin.proxy.send("POST", "http://api.test/", body: "12345").status == 200)
        #expect(try await admin.proxy.get("http://down.test/").status == 502)
        #expect(try await admin.proxy.get("http://unknown.test/").status == 403)

        let answer = try await admin.get("/metrics")
        #expect(answer.field("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
        let page = PrometheusReader(answer.text)
        #expect(page.problems == [])
        #expect(page.value("heimdallr_requests_total", ["upstream": "api.test", "code": "200"]) == 5)
        #expect(page.value("heimdallr_requests_total", ["upstream": "down.test", "code": "502"]) == 1)
        #expect(page.value("heimdallr_requests_total", ["upstream": "(none)", "code": "403"]) == 1)
        #expect(page.value("heimdallr_requests_in_flight") == 0)
        #expect(page.value("heimdallr_upstream_bytes_total", ["upstream": "api.test", "direction": "sent"]) == 5)
        let received = page.value("heimdallr_upstream_bytes_total", ["upstream": "api.test", "direction": "received"])
        #expect(try #require(received) > 5 * 20)
        // The proxy's own answers were received from no upstream.
        #expect(page.value("heimdallr_upstream_bytes_total", ["upstream": "down.test", "direction": "received"]) == 0)
        for (result, count) in [("injected", 4.0), ("kept", 1), ("failed", 0), ("replayed", 0)] {
            #expect(
                page.value("heimdallr_injections_total", ["client": "api", "result": result]) == count, "\(result)")
        }
        let grant = ["client": "api", "grant_type": "client_credentials"]
        let success = grant.merging(["result": "success"]) { $1 }
        #expect(page.value("heimdallr_token_requests_total", success) == 1)
        #expect(page.value("heimdallr_token_request_duration_seconds_count", ["client": "api"]) == 1)
        #expect(page.value("heimdallr_token_events_total", ["client": "api", "event": "token_acquired"]) == 1)
        #expect(page.value("heimdallr_token_waiters", ["client": "api"]) == 0)
        let expiry = try #require(page.value("heimdallr_token_expiry_timestamp_seconds", ["client": "api"]))
        #expect(abs(expiry - Date().timeIntervalSince1970 - 3600) < 60)
        let counter = "heimdallr_request_duration_seconds"
        #expect(page.value("\(counter)_count", ["upstream": "api.test"]) == 5)
        #expect(page.value("\(counter)_bucket", ["upstream": "api.test", "le": "+Inf"]) == 5)
        #expect(try #require(page.value("\(counter)_sum", ["upstream": "api.test"])) > 0)
        #expect(!answer.text.contains("SEKRET"))
    }

    @Test func `an upstream and a client have series of counters from their first use on`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]),
            more: (0..<20).map { "  - {host: many-\($0).test, url: \"http://127.0.0.1:1\", allow_plaintext: true}" }
                .joined(separator: "\n"))
        try await admin.ready()
        func names(with label: String, _ value: String) async throws -> Set<String> {
            let page = PrometheusReader(try await admin.get("/metrics").text)
            #expect(page.problems == [])
            return Set(page.samples.keys.filter { $0.labels[label] == value }.map(\.name))
        }
        #expect(try await names(with: "upstream", "api.test") == [])
        #expect(try await names(with: "upstream", "many-3.test") == [])
        #expect(try await names(with: "upstream", "(none)") == [])
        #expect(try await names(with: "client", "api").contains("heimdallr_token_requests_total"))
        #expect(try await !names(with: "client", "api").contains("heimdallr_injections_total"))
        #expect(try await admin.proxy.get("http://api.test/a").status == 200)
        #expect(try await names(with: "upstream", "api.test").contains("heimdallr_request_duration_seconds_bucket"))
        #expect(try await names(with: "client", "api").contains("heimdallr_injections_total"))
        #expect(try await names(with: "upstream", "many-3.test") == [])
    }

    @Test func `a replayed request is counted as one`() async throws {
        let origin = try RecordingOrigin { exchange in
            let isNew = exchange.head.field("Authorization") == "Bearer second"
            try exchange.respond(isNew ? 200 : 401, body: "x")
        }
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token("first"), .token("second")]),
            more: "  - {host: replay.test, url: \"\(origin.url)\", client: api, allow_plaintext: true}")
        try await admin.ready()
        #expect(try await admin.proxy.get("http://replay.test/").status == 200)
        let page = PrometheusReader(try await admin.get("/metrics").text)
        #expect(page.value("heimdallr_injections_total", ["client": "api", "result": "replayed"]) == 1)
        #expect(page.value("heimdallr_injections_total", ["client": "api", "result": "injected"]) == 0)
        #expect(page.value("heimdallr_requests_total", ["upstream": "replay.test", "code": "200"]) == 1)
        #expect(page.value("heimdallr_requests_total", ["upstream": "replay.test", "code": "401"]) == nil)
    }

    @Test func `requests that wait for a token are seen while they wait, and as failed after`() async throws {
        let admin = try await AdministeredProxy(TokenEndpoint([.silence]), upstream: "token_wait: 5s")
        async let answer = admin.proxy.get("http://api.test/")
        // The two are not read at the same moment.
        let waiting = try await eventually("a request waits", within: .seconds(4)) {
            let page = PrometheusReader(try await admin.get("/metrics").text)
            let isThere =
                page.value("heimdallr_token_waiters", ["client": "api"]) == 1
                && page.value("heimdallr_requests_in_flight") == 1
            return isThere ? page : nil
        }
        #expect(waiting.value("heimdallr_token_expiry_timestamp_seconds", ["client": "api"]) == nil)
        #expect(try await answer.status == 503)
        let page = PrometheusReader(try await admin.get("/metrics").text)
        #expect(page.value("heimdallr_injections_total", ["client": "api", "result": "failed"]) == 1)
        #expect(page.value("heimdallr_requests_total", ["upstream": "api.test", "code": "503"]) == 1)
    }

    @Test func `all loops are counted together, and upstreams of one host too`() async throws {
        let origin = try RecordingOrigin()
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]),
            more: """
                  - {host: api.test, paths: [/plain/], url: "\(origin.url)", allow_plaintext: true}
                """)
        try await admin.ready()
        for path in ["/", "/plain/x"] { #expect(try await admin.proxy.get("http://api.test\(path)").status == 200) }
        let page = PrometheusReader(try await admin.get("/metrics").text)
        #expect(page.problems == [])
        #expect(page.value("heimdallr_requests_total", ["upstream": "api.test", "code": "200"]) == 2)
        #expect(page.value("heimdallr_injections_total", ["client": "api", "result": "injected"]) == 1)
    }

    @Test func `the text of a label can't end it`() {
        #expect(PrometheusText.escaped("a\\b\"c\nd") == #"a\\b\"c\nd"#)
        #expect(PrometheusText.escaped("plain-Ä") == "plain-Ä")
    }

    @Test func `a histogram's buckets add up`() {
        var histogram = Histogram(bounds: [0.1, 1])
        for milliseconds in [50, 100, 101, 1000, 5000] { histogram.record(.milliseconds(milliseconds)) }
        #expect(histogram.counts == [2, 2, 1])
        var output = PrometheusText()
        output.begin("x_seconds", .histogram, "h")
        output.histogram(label: "client", "a", histogram)
        let page = PrometheusReader(output.text)
        #expect(page.problems == [])
        #expect(page.value("x_seconds_bucket", ["client": "a", "le": "0.1"]) == 2)
        #expect(page.value("x_seconds_bucket", ["client": "a", "le": "1.0"]) == 4)
        #expect(page.value("x_seconds_bucket", ["client": "a", "le": "+Inf"]) == 5)
        #expect(page.value("x_seconds_count", ["client": "a"]) == 5)
    }

    @Test func `token requests are counted by what was sent, whatever the client is called`() {
        let metrics = TokenMetrics(clients: [("a", "password"), ("b", "refresh_token")])
        for (client, grant) in [("a", "password"), ("a", "refresh_token"), ("b", "refresh_token"), ("c", "password")] {
            metrics.record(
                TokenRequestReport(client: client, grantType: grant, result: .success, duration: .milliseconds(5)))
        }
        metrics.record(HeimdallrEvent(client: "c", kind: .needsAuthentication))
        #expect(metrics.snapshot(of: "a")?.requests.map(\.grantType) == ["password", "refresh_token"])
        #expect(metrics.snapshot(of: "a")?.requests.map { $0.results[.success] } == [1, 1])
        #expect(metrics.snapshot(of: "b")?.requests.map { $0.results[.success] } == [1])
        #expect(metrics.snapshot(of: "c") == nil)
    }

    @Test func `a client has few series, and those of refreshes from its first refresh token on`() async throws {
        func series(_ answer: TokenEndpointAnswer) async throws -> [Sample] {
            let admin = try await AdministeredProxy(TokenEndpoint([answer]))
            try await admin.ready()
            let page = PrometheusReader(try await admin.get("/metrics").text)
            #expect(page.problems == [])
            return page.samples.keys.filter { $0.labels["client"] == "api" }
        }
        let plain = try await series(.token(accessToken))
        let refreshing = try await series(.token(accessToken, refreshToken: refreshToken))
        #expect(Set(plain.compactMap { $0.labels["grant_type"] }) == ["client_credentials"])
        #expect(Set(refreshing.compactMap { $0.labels["grant_type"] }) == ["client_credentials", "refresh_token"])
        // A failure has a series before it happens, since Prometheus sees no rise from nothing to 1.
        #expect(refreshing.count { $0.name == "heimdallr_token_requests_total" } == 12)
        #expect(plain.count <= 30, "\(plain.map(\.name).sorted())")
    }

    @Test func `a refresh counts although the client has no refresh token any more`() {
        let metrics = TokenMetrics(clients: [("a", "password"), ("b", "refresh_token")])
        #expect(metrics.snapshot(of: "a", refreshes: false)?.requests.map(\.grantType) == ["password"])
        #expect(metrics.snapshot(of: "b", refreshes: false)?.requests.map(\.grantType) == ["refresh_token"])
        metrics.record(
            TokenRequestReport(client: "a", grantType: "refresh_token", result: .refused, duration: .milliseconds(5)))
        #expect(metrics.snapshot(of: "a", refreshes: false)?.requests.last?.results == [.refused: 1])
    }
}
