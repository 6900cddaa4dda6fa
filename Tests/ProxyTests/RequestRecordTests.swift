import CurlTransport
import Proxy
import Reactor
import TestSupport
import Testing

@Suite("the access log speaks of the request it is about", .stopsProxies)
struct RequestRecordTests {
    @Test(arguments: [
        "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n", "nonsense\r\n\r\n",
        "GET http://api.test#x HTTP/1.1\r\nHost: api.test\r\n\r\n",
    ])
    func `the record of a request without a path does not borrow the last one's`(second: String) async throws {
        let proxy = try await ProxyInProcess(isLogged: true)
        let client = try await proxy.connect()
        let path = "/" + String(repeating: "long", count: 200)
        try await client.send(message("GET", "http://api.test\(path)?secret=1"))
        #expect(try await client.response().status == 200)
        try await client.send(second)
        #expect(try await client.response().status >= 400)
        try await eventually("both records") { proxy.log.all.count == 2 }
        #expect(String(decoding: proxy.log.all[0].path, as: UTF8.self) == path)
        #expect(proxy.log.all[1].path.isEmpty)
        #expect(try await proxy.request().status == 200)
    }

    private func text(_ bytes: [UInt8]?) -> String { String(decoding: bytes ?? [], as: UTF8.self) }

    @Test func `the host of a record is the authority that the request went to, not what a field says`() async throws {
        let proxy = try await ProxyInProcess(upstream: "listen: 127.0.0.1:0", isLogged: true)
        _ = try await proxy.send("GET http://api.test/ HTTP/1.1\r\nHost: liar.test\r\n\r\n")
        _ = try await proxy.send("GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
        _ = try await RawClient.exchange(port: proxy.upstreamPort, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _ = try await proxy.send("GET http://unknown.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
        try await eventually("the records") { proxy.log.all.count == 4 }
        let own = proxy.origin.authority
        #expect(proxy.log.all.map { text($0.host) } == [own, own, own, "unknown.test"])
    }

    @Test func `a refusal has its reason, every request its peer`() async throws {
        let proxy = try await ProxyInProcess(upstream: "methods: [GET]", isLogged: true)
        let refused = try await proxy.request("POST", body: "x")
        #expect(try await proxy.request().status == 200)
        try await eventually("the records") { proxy.log.all.count == 2 }
        #expect(proxy.log.all.map(\.reason) == ["not-covered", nil])
        for record in proxy.log.all { #expect(record.address?.description.hasPrefix("127.0.0.1:") == true) }
        #expect(refused.text.contains("\"request_id\":\"\(text(proxy.log.all.first?.requestID))\""))
    }

    private static let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    @Test(arguments: [
        (["X-Request-Id: mine-1"], "mine-1"), (["traceparent: \(trace)"], trace),
        (["Traceparent: \(trace)", "x-request-id: mine.2/a+b=="], "mine.2/a+b=="),
        (["X-Request-Id: with blank", "traceparent: \(trace)"], trace),
    ])
    func `a record takes the request's id from the program`(fields: [String], id: String) async throws {
        let proxy = try await ProxyInProcess(isLogged: true)
        _ = try await proxy.request(fields: fields)
        try await eventually("the record") { proxy.log.all.count == 1 }
        #expect(text(proxy.log.all.first?.requestID) == id)
        // Passed on as it came.
        #expect(fields.allSatisfy { proxy.origin.requests.first?.fields.map(\.description).contains($0) == true })
    }

    @Test(arguments: [
        [], ["X-Request-Id:"], ["X-Request-Id: a b"], ["X-Request-Id: \(String(repeating: "a", count: 129))"],
        ["X-Request-Id: a\"b"], ["X-Request-Id: \u{1b}[0m".replacing("\u{1b}", with: "\u{e9}")],
        ["traceparent: 00-00000000000000000000000000000000-00f067aa0ba902b7-01"],
        ["traceparent: 00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"], ["traceparent: 00-4bf9"],
    ])
    func `a request without an id gets one of ours, another for each`(fields: [String]) async throws {
        let proxy = try await ProxyInProcess(isLogged: true)
        _ = try await proxy.request(fields: fields)
        _ = try await proxy.request(fields: fields)
        _ = try await proxy.send("nonsense\r\n\r\n")
        try await eventually("the records") { proxy.log.all.count == 3 }
        let ids = proxy.log.all.map { text($0.requestID) }
        #expect(Set(ids).count == 3)
        for (id, number) in zip(ids, 1...) {
            #expect(id.count == 10 && id.hasSuffix("-\(number)"), "\(id)")
        }
        // Only the log shows it.
        #expect(
            proxy.origin.requests.allSatisfy { request in
                !fields.isEmpty || request.values("X-Request-Id").isEmpty
            })
    }

    @Test func `a head that is refused is logged as far as it was read, and says why`() async throws {
        let proxy = try await ProxyInProcess(proxy: "header_timeout: 500ms\nmax_header_bytes: 1KiB", isLogged: true)
        let cases: [(request: String, method: String, host: String, path: String, cause: String?)] = [
            (
                "GET http://api.test/a?secret HTTP/1.1\r\nHost: api.test\r\nX : y\r\n\r\n", "GET", "api.test", "/a",
                "whitespace"
            ),
            ("POST /a b HTTP/1.1\r\nHost: api.test\r\n\r\n", "POST", "", "/a", "HTTP/1.1"),
            ("GET http://u:secret@api.test/a HTTP/1.1\r\nHost: api.test\r\n\r\n", "GET", "api.test", "/a", "user name"),
            (
                "CONNECT u:secret@api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n", "CONNECT", "api.test:443", "",
                "user name"
            ),
            (
                "GET /a HTTP/1.1\r\nHost: api.test\r\nX: \(String(repeating: "x", count: 2000))\r\n\r\n", "GET",
                "api.test",
                "/a", "too large"
            ),
            ("GET /a HTTP/1.1\r\nHost: api.test\r\nX: sl", "GET", "api.test", "/a", nil),
        ]
        for (index, one) in cases.enumerated() {
            _ = try await proxy.send(one.request)
            try await eventually("the record") { proxy.log.all.count == index + 1 }
            let record = proxy.log.all[index]
            #expect(text(record.method) == one.method)
            #expect(text(record.host) == one.host)
            #expect(text(record.path) == one.path)
            if let cause = one.cause {
                #expect(record.cause?.contains(cause) == true, "\(record.cause ?? "")")
            } else {
                #expect(record.reason == "slow-request")
            }
        }
        #expect(proxy.log.all.map(\.reason).prefix(5).allSatisfy { $0 == "malformed-request" })
    }

    @Test(arguments: [
        ("OPTIONS * HTTP/1.1\r\nHost: api.test\r\n\r\n", "*"),
        ("OPTIONS http://api.test HTTP/1.1\r\nHost: api.test\r\n\r\n", "*"),
        ("OPTIONS http://api.test/a HTTP/1.1\r\nHost: api.test\r\n\r\n", "/a"),
        ("OPTIONS * HTTP/1.1\r\nHost: unknown.test\r\n\r\n", "*"),
        ("GET http://api.test HTTP/1.1\r\nHost: api.test\r\n\r\n", "/"),
        ("GET http://api.test?secret HTTP/1.1\r\nHost: api.test\r\n\r\n", "/"),
        ("GET http://unknown.test HTTP/1.1\r\nHost: unknown.test\r\n\r\n", "/"),
    ])
    func `the record of a request without a path in its target has one`(request: String, path: String) async throws {
        let proxy = try await ProxyInProcess(isLogged: true)
        _ = try await proxy.send(request)
        try await eventually("the record") { proxy.log.all.count == 1 }
        #expect(text(proxy.log.all.first?.path) == path)
    }

    @Test func `the record of a request without a user's credential says what was asked for`() async throws {
        let proxy = try await ProxyInProcess(proxy: "users: {a: b}", isLogged: true)
        _ = try await proxy.send("OPTIONS * HTTP/1.1\r\nHost: api.test\r\n\r\n")
        _ = try await proxy.send("GET http://api.test/a?secret HTTP/1.1\r\nHost: api.test\r\n\r\n")
        try await eventually("the records") { proxy.log.all.count == 2 }
        #expect(proxy.log.all.map { text($0.path) } == ["*", "/a"])
        #expect(proxy.log.all.map(\.status) == [407, 407])
    }

    @Test func `an upstream's failure says what was asked for, whose token it was, and which request`() async throws {
        let failures = Recorder<UpstreamFailure>()
        var observer = ProxyObserver()
        observer.upstreamFailed = { failures.append($0) }
        let proxy = try await ProxyInProcess(
            proxy: "connect: tunnel\ntunnels: [\"127.0.0.1:1\"]", url: "/in", observer: observer, isLogged: true,
            answer: { $0.close() })
        _ = try await proxy.request("POST", "http://api.test/a?secret", fields: ["X-Request-Id: mine"], body: "x")
        let failure = try await eventually("the failure") { failures.all.first }
        #expect(failure.upstream == "api.test")
        #expect(failure.client == "api")
        #expect(text(failure.url) == "\(proxy.origin.url)/in/a")
        #expect(text(failure.requestID) == "mine")
        #expect(failure.error.kind == .connectionLost)
        #expect(!failure.reason.isEmpty && !failure.advice.isEmpty)

        _ = try await proxy.send("CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", method: "CONNECT")
        let second = try await eventually("the tunnel's failure") { failures.all.count == 2 ? failures.all[1] : nil }
        #expect(second.upstream == "(tunnels)" && second.client == nil)
        #expect(text(second.url) == "127.0.0.1:1")
        try await eventually("the records") { proxy.log.all.count == 2 }
        #expect(proxy.log.all.map(\.requestID) == failures.all.map(\.requestID))
    }
}
