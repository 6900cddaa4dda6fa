import CurlTransport
import Reactor
import TestSupport
import Testing

@testable import Proxy

@Suite("spans of requests, and what upstreams are told of them", .stopsProxies, .timeLimit(.minutes(2)))
struct SpanTests {
    private static let trace = "0af7651916cd43dd8448eb211c80319c"
    private static let span = "b7ad6b7169203331"
    private static let parent = "00-\(trace)-\(span)-01"
    private static let unsampled = "00-\(trace)-\(span)-00"

    private func recording(_ spans: Recorder<TraceSpan>, share: Double) -> ProxyObserver {
        var observer = ProxyObserver()
        observer.spans = ExchangeSpans(sampler: TraceSampler(share: share), ended: { spans.append($0.traceSpan) })
        return observer
    }

    private func hex(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// One request through a proxy that records so many.
    private func exchange(
        share: Double?, fields: [String], upstream: String = ""
    ) async throws -> (sent: RecordedRequest, spans: [TraceSpan]) {
        let spans = Recorder<TraceSpan>()
        let proxy = try await ProxyInProcess(
            upstream: upstream, observer: share.map { recording(spans, share: $0) } ?? ProxyObserver())
        #expect(try await proxy.request("GET", "http://api.test/a/b?secret=query", fields: fields).status == 200)
        // A second request, so that the first one's span is recorded.
        _ = try await proxy.request("GET", "http://other.test/")
        return (try #require(proxy.origin.requests.first), spans.all)
    }

    @Test(arguments: [nil, 0.0, 1.0])
    func `a program's context goes on as it is where nothing is recorded`(share: Double?) async throws {
        let fields = ["Traceparent: \(Self.unsampled)", "tracestate: a=1, b=2", "tracestate: c=3"]
        let (sent, spans) = try await exchange(share: share, fields: fields)
        #expect(sent.values("traceparent") == [Self.unsampled])
        #expect(sent.values("tracestate") == ["a=1, b=2", "c=3"])
        #expect(spans.filter { $0.context.parent != nil }.isEmpty)
    }

    @Test(arguments: [nil, 0.0])
    func `a field that is no trace context goes on as it is, too`(share: Double?) async throws {
        let fields = ["traceparent: nonsense", "tracestate: a=1"]
        let (sent, spans) = try await exchange(share: share, fields: fields)
        #expect(sent.values("traceparent") == ["nonsense"])
        #expect(sent.values("tracestate") == ["a=1"])
        #expect(spans.isEmpty)
    }

    @Test(arguments: [nil, 0.0])
    func `nobody is told of a trace that is not recorded`(share: Double?) async throws {
        let (sent, spans) = try await exchange(share: share, fields: [])
        #expect(sent.values("traceparent").isEmpty && sent.values("tracestate").isEmpty)
        #expect(spans.isEmpty)
    }

    @Test(arguments: [0.0, 1.0])
    func `a program that records gets a span beneath its own, and the upstream that of ours`(
        share: Double
    ) async throws {
        let fields = ["traceparent: \(Self.parent)", "tracestate: a=1, b=2", "tracestate: c=3"]
        let (sent, spans) = try await exchange(share: share, fields: fields)
        let span = try #require(spans.first)
        #expect(hex(span.context.trace.high) + hex(span.context.trace.low) == Self.trace)
        #expect(span.context.parent.map { hex($0) } == Self.span)
        let own = hex(span.context.span)
        #expect(own != Self.span)
        #expect(sent.values("traceparent") == ["00-\(Self.trace)-\(own)-01"])
        #expect(sent.values("tracestate") == ["a=1, b=2", "c=3"])
    }

    @Test(
        "a trace begins here where the program's context can't be used, and nothing is left of that",
        arguments: [
            [], ["traceparent: nonsense", "tracestate: a=1"], ["tracestate: a=1", "Tracestate: b=2"],
            ["traceparent: \(parent)", "traceparent: \(parent)", "tracestate: a=1"],
            ["traceparent: 00-\(trace.uppercased())-\(span)-00"],
            ["traceparent: ff-\(trace)-\(span)-00"], ["traceparent: \(unsampled)-more"],
        ])
    func restart(fields: [String]) async throws {
        let (sent, spans) = try await exchange(share: 1, fields: fields)
        let span = try #require(spans.first)
        let trace = hex(span.context.trace.high) + hex(span.context.trace.low)
        #expect(trace != Self.trace && span.context.parent == nil)
        #expect(sent.values("traceparent") == ["00-\(trace)-\(hex(span.context.span))-03"])
        #expect(sent.values("tracestate").isEmpty)
    }

    @Test func `trace fields that the configuration injects stay`() async throws {
        let (sent, spans) = try await exchange(
            share: 1, fields: [],
            upstream: "inject:\n  - {header: Authorization, scheme: Bearer}\n  - {header: Traceparent, value: theirs}")
        #expect(sent.values("traceparent") == ["theirs"])
        #expect(spans.count == 2)
    }

    @Test func `a span says where the request went, and never the query`() async throws {
        let before = WallTime.now.sinceEpoch
        let spans = Recorder<TraceSpan>()
        let proxy = try await ProxyInProcess(url: "/base", observer: recording(spans, share: 1)) {
            $0.pause(.milliseconds(60))
            try $0.respond(body: "ok")
        }
        _ = try await proxy.request("GET", "http://api.test/a/b?secret=query", fields: ["Cookie: secret"])
        let span = try await eventually("a span") { spans.all.first }
        let after = WallTime.now.sinceEpoch
        #expect(span.name == "GET" && span.kind == .client && !span.isError)
        #expect(before <= span.start && span.start < span.end && span.end <= after)
        let origin = proxy.origin.authority
        let port = Int64(proxy.origin.port)
        #expect(
            span.attributes == [
                .init("http.request.method", .text("GET")),
                .init("url.full", .text("http://\(origin)/base/a/b")), .init("url.scheme", .text("http")),
                .init("url.path", .text("/base/a/b")), .init("server.address", .text("127.0.0.1")),
                .init("server.port", .number(port)), .init("http.response.status_code", .number(200)),
                .init("network.protocol.version", .text("1.1")), .init("heimdallr.client", .text("api")),
                .init("heimdallr.upstream", .text("api.test")), .init("heimdallr.connection_reused", .flag(false)),
            ])
        // The first request waits for the first token, and for a connection.
        #expect(span.events.map(\.name).suffix(2) == ["connect", "first_byte"])
        #expect(span.events.allSatisfy { span.start <= $0.time && $0.time <= span.end })
        let firstByte = try #require(span.events.last)
        #expect(firstByte.time - span.start >= 60_000_000)
        guard case .seconds(let seconds) = firstByte.attributes.first?.value else {
            Issue.record("no duration")
            return
        }
        #expect(seconds >= 0.06 && seconds <= Double(span.end - span.start) / 1e9)
    }

    @Test func `what the proxy answers by itself is a server's span`() async throws {
        let spans = Recorder<TraceSpan>()
        let proxy = try await ProxyInProcess(observer: recording(spans, share: 1))
        #expect(try await proxy.request("BREW", "http://other.test:81/x?y").status == 403)
        let span = try await eventually("a span") { spans.all.first }
        #expect(span.name == "HTTP" && span.kind == .server && !span.isError && span.events.isEmpty)
        #expect(
            span.attributes == [
                .init("http.request.method", .text("_OTHER")), .init("http.request.method_original", .text("BREW")),
                .init("url.scheme", .text("http")), .init("url.path", .text("/x")),
                .init("server.address", .text("other.test")), .init("server.port", .number(81)),
                .init("http.response.status_code", .number(403)), .init("network.protocol.version", .text("1.1")),
                .init("heimdallr.reason", .text("no-upstream")),
            ])
        // Bytes that are no request have a span, too, and end nothing.
        _ = try await proxy.send("\u{1}\u{2}\r\n\r\n")
        let second = try await eventually("a span") { spans.all.count > 1 ? spans.all[1] : nil }
        #expect(
            second.kind == .server && second.attributes.contains(.init("heimdallr.reason", .text("malformed-request"))))
    }

    @Test func `an upstream that is not there, and one that refuses, are errors`() async throws {
        let spans = Recorder<TraceSpan>()
        let more = "- {host: gone.test, url: \"http://127.0.0.1:1\", client: api, allow_plaintext: true}"
        let proxy = try await ProxyInProcess(more: more, observer: recording(spans, share: 1)) {
            try $0.respond(404, body: "")
        }
        #expect(try await proxy.request("GET", "http://gone.test/").status == 502)
        #expect(try await proxy.request("GET", "http://api.test/").status == 404)
        let all = try await eventually("two spans") { spans.all.count == 2 ? spans.all : nil }
        #expect(all.allSatisfy { $0.isError && $0.kind == .client })
        #expect(all[0].attributes.contains(.init("error.type", .text("connection_refused"))))
        #expect(all[1].attributes.contains(.init("error.type", .text("404"))))
    }

    @Test func `a request that waits for a token is known while it waits, if it is recorded`() async throws {
        let told = Recorder<String>()
        let spans = Recorder<TraceSpan>()
        var observer = ProxyObserver()
        observer.spans = ExchangeSpans(sampler: TraceSampler(share: 0), ended: { spans.append($0.traceSpan) }) {
            told.append("\($0) \($2) \($1.parent != nil)")
        }
        let endpoint = try TokenEndpoint { _, number in .token("T\(number)").delayed(.milliseconds(150)) }
        let proxy = try await ProxyInProcess(endpoint: endpoint, observer: observer)
        #expect(
            try await proxy.request("GET", "http://api.test/", fields: ["traceparent: \(Self.parent)"]).status == 200)
        let span = try await eventually("a span") { spans.all.first }
        #expect(told.all == ["api true true", "api false true"])
        #expect(span.events.map(\.name) == ["token_wait", "connect", "first_byte"])
        let wait = span.events[0]
        #expect(wait.time - span.start >= 140_000_000 && wait.time <= span.events[1].time)
    }

    @Test func `requests over HTTP 2 get spans as over HTTP 1`() async throws {
        let spans = Recorder<TraceSpan>()
        let origin = try RecordingOrigin()
        let nginx = try await Nginx.secure(
            locations: "location / { proxy_http_version 1.1; proxy_pass \(origin.url); }")
        let two = secureUpstream("two.test", nginx.httpsPort, nginx.authority, "http2: true")
        let proxy = try await ProxyInProcess(more: two, observer: recording(spans, share: 0))
        let fields = ["traceparent: \(Self.parent)", "tracestate: a=1"]
        #expect(try await proxy.request("GET", "http://two.test/", fields: fields).status == 200)
        let span = try await eventually("a span") { spans.all.first }
        #expect(span.attributes.contains(.init("network.protocol.version", .text("2"))))
        #expect(span.attributes.contains(.init("url.full", .text("https://localhost:\(nginx.httpsPort)/"))))
        #expect(span.events.map(\.name).suffix(2) == ["connect", "first_byte"])
        let own = hex(span.context.span)
        #expect(origin.requests.first?.values("traceparent") == ["00-\(Self.trace)-\(own)-01"])
        #expect(origin.requests.first?.values("tracestate") == ["a=1"])
    }

    @Test func `a span keeps only a part of a long path`() async throws {
        let sizes = Recorder<Int>()
        var observer = ProxyObserver()
        observer.spans = ExchangeSpans(sampler: TraceSampler(share: 1), ended: { sizes.append($0.size) })
        let proxy = try await ProxyInProcess(observer: observer)
        _ = try await proxy.request("GET", "http://api.test/" + String(repeating: "x", count: 30_000))
        #expect(try await eventually("a span") { sizes.all.first } < 2500)
    }
}
