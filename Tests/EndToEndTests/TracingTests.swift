import Foundation
import TestSupport
import Testing

@Suite("spans reach a collector", .timeLimit(.minutes(3)))
struct TracingTests {
    private static let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    private func proxy(
        _ collector: String, to origin: RecordingOrigin, _ lines: String = "sample: 1",
        tokenEndpoint: TokenEndpoint? = nil, upstream: String = "", environment: [String: String?] = [:]
    ) async throws -> RunningProxy {
        try await RunningProxy(
            to: origin, upstream: upstream, admin: "", tokenEndpoint: tokenEndpoint,
            more: "tracing:\n  otlp: \(collector)\n\(lines.indented(2))", environment: environment)
    }

    private func metric(_ proxy: RunningProxy, _ line: String) async throws -> Int? {
        let port = try await proxy.administration().port
        let page = try await RawClient.exchange(
            port: port, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\r\n")
        for text in page.text.split(separator: "\n") where text.hasPrefix("heimdallr_spans_\(line) ") {
            return Int(text.split(separator: " ")[1])
        }
        return nil
    }

    /// Waits until so many were lost for that reason.
    private func lost(_ count: Int, _ reason: String, by proxy: RunningProxy) async throws {
        _ = try await eventually("\(count) spans lost: \(reason)", within: .seconds(30)) {
            let lost = try await metric(proxy, "dropped_total{reason=\"\(reason)\"}")
            return lost ?? 0 >= count ? true : nil
        }
    }

    @Test func `a collector gets spans of requests and token requests, by OpenTelemetry's own schema`() async throws {
        let collector = try await SpanCollector()
        let origin = try RecordingOrigin { exchange in
            exchange.pause(.milliseconds(60))
            try exchange.respond(body: "ok")
        }
        let endpoint = try TokenEndpoint([.token("the-token-0123456789").delayed(.milliseconds(400))])
        let proxy = try await proxy(
            collector.url, to: origin, "sample: 0\nservice_name: billing sidecar", tokenEndpoint: endpoint)
        let began = UInt64(Date().timeIntervalSince1970 * 1e9)
        let fields = [("traceparent", Self.parent), ("tracestate", "vendor=1"), ("Cookie", "session=header-secret")]
        #expect(try await proxy.get("http://api.test/a/b?key=query-secret", fields: fields).status == 200)
        #expect(try await proxy.get("http://api.test/not-recorded").status == 200)
        let ended = UInt64(Date().timeIntervalSince1970 * 1e9)
        let spans = try await collector.spans(2)
        #expect(spans.count == 2)
        let span = try #require(spans.first { $0.name == "GET" })
        let token = try #require(spans.first { $0.name == "token request" })

        #expect(span.trace == "0af7651916cd43dd8448eb211c80319c" && span.parent == "b7ad6b7169203331")
        #expect(span.span.count == 16 && span.span != span.parent && span.state.isEmpty)
        let sent = try #require(origin.requests.first)
        #expect(sent.values("traceparent") == ["00-\(span.trace)-\(span.span)-01"])
        #expect(sent.values("tracestate") == ["vendor=1"])
        #expect(span.kind == "SPAN_KIND_CLIENT" && span.status == "STATUS_CODE_UNSET")
        // Recorded, with a foreign parent.
        #expect(span.flags == 0x301)
        #expect(began <= span.start && span.start < span.end && span.end <= ended)
        #expect(
            span.attributes == [
                "http.request.method": "GET", "url.full": "\(origin.url)/a/b", "url.scheme": "http",
                "url.path": "/a/b", "server.address": "127.0.0.1", "server.port": "\(origin.port)",
                "http.response.status_code": "200", "network.protocol.version": "1.1", "heimdallr.client": "api",
                "heimdallr.upstream": "api.test", "heimdallr.connection_reused": "false",
            ])
        #expect(span.events.map(\.name) == ["token_wait", "connect", "first_byte"])
        for event in span.events { #expect(span.start <= event.time && event.time <= span.end) }
        #expect(span.events[0].time - span.start >= 200_000_000)
        #expect(try #require(Double(span.events[2].attributes["heimdallr.duration"] ?? "")) >= 0.055)
        #expect(span.resource["service.name"] == "billing sidecar")
        #expect(span.resource["service.version"] == span.version && span.scope == "heimdallr-proxy")
        #expect(span.resource["service.instance.id"]?.count == 32)

        // It was made for the request that waited.
        #expect(token.trace == span.trace && token.parent == span.span && token.flags == 0x101)
        #expect(token.kind == "SPAN_KIND_CLIENT" && token.end - token.start >= 350_000_000)
        #expect(
            token.attributes == [
                "heimdallr.client": "api", "heimdallr.grant_type": "client_credentials",
                "heimdallr.result": "success", "url.scheme": "http", "server.address": "127.0.0.1",
                "server.port": "\(endpoint.port)", "http.response.status_code": "200",
            ])
        for export in collector.exports {
            #expect(export.path == "/v1/traces" && export.fields["content-type"] == "application/x-protobuf")
            #expect(export.unknown == 0)
        }
        let everything = collector.process.output
        for secret in ["query-secret", "header-secret", "vendor=1", "the-token", ProxyConfiguration.secret] {
            #expect(!everything.contains(secret), "\(secret)")
        }
        #expect(try await metric(proxy, "exported_total") == 2)
        #expect(try await proxy.terminate() == .exited(0))
    }

    @Test func `spans go over TLS, with headers that are secrets; the rest goes at the end`() async throws {
        let collector = try await SpanCollector(isSecure: true)
        let origin = try RecordingOrigin()
        let anchors = try #require(collector.authority).certificateFile
        let proxy = try await proxy(
            "\(collector.url)/v1/traces", to: origin,
            "sample: 1\nheaders: {Authorization: {env: COLLECTOR_KEY}}\ntls: {ca_file: \(anchors)}",
            environment: ["COLLECTOR_KEY": "Bearer collector-key-0123456789"])
        #expect(try await proxy.get("http://api.test/").status == 200)
        // Sooner than spans are sent by themselves.
        #expect(try await proxy.terminate() == .exited(0))
        let spans = collector.spans
        #expect(Set(spans.map(\.name)) == ["GET", "token request"])
        // The token request belongs to a waiting request's trace, if one waits already.
        let request = try #require(spans.first { $0.name == "GET" })
        #expect(spans.allSatisfy { $0.parent.isEmpty || $0.parent == request.span })
        #expect(collector.exports.allSatisfy { $0.fields["authorization"] == "Bearer collector-key-0123456789" })
        #expect(origin.requests.first?.values("traceparent").first?.contains(spans[0].trace) != nil)
        #expect(!proxy.log.contains("collector-key"))
    }

    @Test func `a collector with somebody else's certificate gets nothing`() async throws {
        let collector = try await SpanCollector(isSecure: true)
        let origin = try RecordingOrigin()
        let proxy = try await proxy(collector.url, to: origin)
        #expect(try await proxy.get("http://api.test/").status == 200)
        _ = try await eventually("the log says so") { proxy.log.contains("spans can't be exported") ? true : nil }
        #expect(proxy.log.contains("certificate"))
        #expect(try await proxy.terminate() == .exited(0))
        #expect(collector.exports.isEmpty)
        #expect(proxy.log.contains("spans were not exported before the exit") || proxy.log.contains("stopped"))
    }

    @Test(
        "a collector is asked again after the failures and the time that the protocol names",
        arguments: [
            ("status:429:2", 1.9), ("status:503:1", 0.95), ("status:502", 0.45), ("close", 0.45), ("hugehead", 0.45),
        ])
    func again(behaviour: String, seconds: Double) async throws {
        let collector = try await SpanCollector([behaviour])
        let origin = try RecordingOrigin()
        let proxy = try await proxy(collector.url, to: origin)
        #expect(try await proxy.get("http://api.test/").status == 200)
        let spans = try await collector.spans(2)
        let exports = collector.exports
        #expect(exports.count == 2 && exports[0].spans.map(\.span) == exports[1].spans.map(\.span))
        #expect(exports[1].time - exports[0].time >= seconds)
        #expect(spans.count == 2)
        #expect(try await metric(proxy, "dropped_total{reason=\"unreachable\"}") == 0)
        #expect(proxy.log.contains("spans can't be exported"))
        // The collector has noted the spans before its answer has come.
        try await eventually("the log says so") { proxy.log.contains("spans are exported again") }
    }

    @Test(
        "spans that a collector refuses are dropped, and not sent again",
        arguments: ["status:400", "status:500", "redirect", "huge"])
    func refused(behaviour: String) async throws {
        let collector = try await SpanCollector([behaviour])
        let origin = try RecordingOrigin()
        let proxy = try await proxy(collector.url, to: origin)
        #expect(try await proxy.get("http://api.test/").status == 200)
        try await lost(2, "refused", by: proxy)
        #expect(try await proxy.get("http://api.test/").status == 200)
        let spans = try await collector.spans(1)
        #expect(spans.count == 1)
        let exports = collector.exports
        #expect(exports.count == 2 && exports[1].path == "/v1/traces")
        #expect(!exports[0].spans.contains { $0.span == spans[0].span })
        // Of an answer without end only so much is read as sockets hold.
        if behaviour == "huge" { #expect(try proxy.process.peakResidentMemory() < 96 << 20) }
    }

    @Test func `spans that a collector takes in part, or answers with garbage, are not sent again`() async throws {
        let collector = try await SpanCollector(["partial:1:too old\u{1b}[31m", "garbage"])
        let origin = try RecordingOrigin()
        let proxy = try await proxy(collector.url, to: origin)
        #expect(try await proxy.get("http://api.test/").status == 200)
        try await lost(1, "rejected", by: proxy)
        #expect(try await metric(proxy, "exported_total") == 1)
        try await eventually("the log") {
            proxy.log.contains("the collector rejected some spans") && proxy.log.contains("too old")
        }
        #expect(!proxy.log.contains("\u{1b}"))
        #expect(try await proxy.get("http://api.test/").status == 200)
        _ = try await eventually("they count as taken") { try await metric(proxy, "exported_total") == 2 ? true : nil }
        #expect(collector.exports.map(\.behaviour) == ["partial:1:too old\u{1b}[31m", "garbage"])
    }

    @Test(arguments: ["slow", "drip"])
    func `a slow collector holds up no request, no memory and no end`(behaviour: String) async throws {
        let collector = try await SpanCollector(Array(repeating: behaviour, count: 100))
        let origin = try RecordingOrigin()
        let proxy = try await proxy(collector.url, to: origin)
        let count = 3000
        for _ in 0..<4 { #expect(try await proxy.get("http://api.test/").status == 200) }
        _ = try await eventually("the collector has a batch") { collector.exports.isEmpty ? nil : true }
        let client = try await RawClient.connect(port: proxy.port)
        let start = ContinuousClock.now
        let path = String(repeating: "x", count: 4000)
        for _ in 0..<count / 100 {
            try await client.send(
                String(repeating: "GET http://api.test/\(path) HTTP/1.1\r\nHost: api.test\r\n\r\n", count: 100))
            for _ in 0..<100 { #expect(try await client.response().status == 200) }
        }
        // Nobody waited for the collector's ten seconds.
        #expect(ContinuousClock.now - start < .seconds(60))
        let lost = try #require(try await metric(proxy, "dropped_total{reason=\"queue_full\"}"))
        #expect(lost > 0 && lost <= count)
        #expect(try proxy.process.peakResidentMemory() < 128 << 20)
        let end = ContinuousClock.now
        #expect(try await proxy.terminate() == .exited(0))
        #expect(ContinuousClock.now - end < .seconds(8))
        #expect(proxy.log.contains("spans were not exported before the exit"))
    }

    @Test func `a collector that is not there costs spans, and nothing else`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await proxy("http://127.0.0.1:1", to: origin)
        for _ in 0..<5 { #expect(try await proxy.get("http://api.test/").status == 200) }
        _ = try await eventually("the log says so") { proxy.log.contains("spans can't be exported") ? true : nil }
        #expect(try await metric(proxy, "exported_total") == 0)
        let end = ContinuousClock.now
        #expect(try await proxy.terminate() == .exited(0))
        #expect(ContinuousClock.now - end < .seconds(5))
    }

    @Test func `without tracing nothing is added, and no metric`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(to: origin, admin: "")
        let fields = [("traceparent", Self.parent), ("tracestate", "a=1"), ("tracestate", "b=2")]
        #expect(try await proxy.get("http://api.test/", fields: fields).status == 200)
        #expect(try await proxy.get("http://api.test/").status == 200)
        #expect(origin.requests[0].values("traceparent") == [Self.parent])
        #expect(origin.requests[0].values("tracestate") == ["a=1", "b=2"])
        #expect(origin.requests[1].values("traceparent").isEmpty)
        #expect(try await metric(proxy, "exported_total") == nil)
    }

    @Test func `another collector is taken up by a reload, and what is left goes to the former`() async throws {
        let first = try await SpanCollector()
        let second = try await SpanCollector()
        let origin = try RecordingOrigin()
        let proxy = try await proxy(first.url, to: origin)
        let file = "\(proxy.directory.path)/config.yaml"
        let text = try String(contentsOfFile: file, encoding: .utf8)
        func reload(_ text: String) async throws {
            try text.write(toFile: file, atomically: true, encoding: .utf8)
            let command = try await RunningProxy.run(["reload", "--config", file])
            #expect(command.ending == .exited(0), "\(command.transcript)")
        }
        #expect(try await proxy.get("http://api.test/one").status == 200)
        try await reload(text.replacing(first.url, with: second.url))
        #expect(try await proxy.get("http://api.test/two").status == 200)
        #expect(try await first.spans(2).contains { $0.attributes["url.path"] == "/one" })
        #expect(try await second.spans(1).map { $0.attributes["url.path"] } == ["/two"])
        try await reload(text.prefix(upTo: try #require(text.range(of: "tracing:")).lowerBound) + "")
        #expect(try await proxy.get("http://api.test/three").status == 200)
        #expect(try await proxy.terminate() == .exited(0))
        #expect(second.spans.count == 1 && first.spans.count == 2)
        #expect(origin.requests.last?.values("traceparent").isEmpty == true)
    }
}
