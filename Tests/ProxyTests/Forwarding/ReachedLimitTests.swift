import Configuration
import Heimdallr
import Proxy
import TestSupport
import Testing

@Suite("limits that end an exchange", .stopsProxies, .timeLimit(.minutes(2)))
struct ReachedLimitTests {
    /// A limit, and an exchange that reaches it.
    struct Case: Sendable, CustomTestStringConvertible {
        var key: String
        var name: String
        var upstream = ""
        var proxy = ""
        var url = "http://api.test/x"
        var request = message("GET", "http://api.test/x?secret=1")
        var answer: RecordingOrigin.Handler = { _ = $0.waitForPeerToLeave() }
        var testDescription: String { name }

        static func begin(_ type: String) -> RecordingOrigin.Handler {
            { exchange in
                try exchange.send(
                    "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
                _ = exchange.waitForPeerToLeave()
            }
        }
    }

    static let cases = [
        Case(key: "response_timeout", name: "no answer", upstream: "response_timeout: 100ms"),
        Case(key: "idle_timeout", name: "half an answer", upstream: "idle_timeout: 100ms", answer: Case.begin("a/b")),
        Case(
            key: "idle_timeout", name: "events", upstream: "idle_timeout: 100ms",
            answer: Case.begin("text/event-stream; charset=utf-8")),
        Case(
            key: "idle_timeout", name: "a call", upstream: "idle_timeout: 100ms",
            request: message(
                "POST", "http://api.test/x", fields: ["Content-Type: application/grpc", "TE: trailers"], body: "x"),
            answer: Case.begin("application/grpc")),
        Case(
            key: "proxy.idle_timeout", name: "half a request", proxy: "idle_timeout: 100ms",
            request: "POST http://api.test/x HTTP/1.1\r\nHost: api.test\r\nContent-Length: 10\r\n\r\nhalf"),
        Case(
            key: "proxy.max_body_bytes", name: "a long body", proxy: "max_body_bytes: 4",
            request: "POST http://api.test/x HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n"
                + "12345678\r\n"),
        Case(
            key: "proxy.header_timeout", name: "half a head", proxy: "header_timeout: 100ms", url: "",
            request: "GET http://api.test/x HTTP/1.1\r\nHo"),
    ]

    private let reports = Recorder<LimitReport>()

    private func observer() -> ProxyObserver {
        var observer = ProxyObserver()
        observer.limitReached = { [reports] in reports.append($0) }
        return observer
    }

    private func report(_ key: String) async throws -> LimitReport {
        let report = try await eventually("the report") { reports.all.first }
        #expect(report.limit.key == key)
        #expect(report.limit.remedy.contains(key.split(separator: ".").last ?? ""), "\(report.limit.remedy)")
        return report
    }

    @Test(arguments: cases)
    func `each limit that ends an exchange names its key, with what to do`(its: Case) async throws {
        let proxy = try await ProxyInProcess(
            upstream: its.upstream, proxy: its.proxy, observer: observer(), isLogged: true, answer: its.answer)
        let client = try await proxy.connect(sending: its.request)
        let report = try await report(its.key)
        #expect(report.upstream == (its.url.isEmpty ? "" : "api.test"))
        let url = its.url.isEmpty ? "api.test" : "\(proxy.origin.url)/x"
        #expect(String(decoding: report.url, as: UTF8.self) == url)
        _ = client
        let record = try await eventually("the record") { proxy.log.all.first }
        #expect(record.cause?.contains(its.key) == true, "\(record.cause ?? "")")
        #expect(record.requestID == report.requestID)
    }

    @Test(arguments: [true, false])
    func `a program that reads nothing, and the proxy's end, are limits, too`(isStalled: Bool) async throws {
        let proxy = try await ProxyInProcess(
            proxy: isStalled ? "idle_timeout: 300ms" : "", observer: observer(), answer: { try $0.flood(1 << 30) })
        let client = try await proxy.connect(receiveBuffer: 4096, sending: message())
        _ = try await client.read(count: 100)
        if !isStalled { await proxy.server.drain(within: .milliseconds(50)) }
        _ = try await report(isStalled ? "proxy.idle_timeout" : "proxy.drain_timeout")
    }

    @Test func `a token that comes too late names token_wait, in the answer, too`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let endpoint = try TokenEndpoint { _, _ in
            gate.wait()
            return .token("T")
        }
        let proxy = try await ProxyInProcess(
            upstream: "token_wait: 100ms", endpoint: endpoint, observer: observer())
        let answer = try await proxy.request("GET", "http://api.test/")
        #expect(answer.status == 503 && answer.text.contains("token_wait"), "\(answer.text)")
        _ = try await report("token_wait")
    }

    @Test(arguments: BytePipe.Kind.allCases)
    func `a silent tunnel names proxy.idle_timeout, an upgraded connection the upstream's`(kind: BytePipe.Kind)
        async throws
    {
        let pipe = try await BytePipe(kind, idleTimeout: "100ms", observer: observer())
        let ends = try await pipe.open()
        let report = try await report(kind == .tunnel ? "proxy.idle_timeout" : "idle_timeout")
        #expect(report.upstream == kind.upstream)
        withExtendedLifetime(ends) {}
    }

    @Test func `many exchanges that one limit ends are one line, which a later one counts`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: "response_timeout: 50ms", observer: observer(), answer: { _ = $0.waitForPeerToLeave() })
        for _ in 0..<4 { #expect(try await proxy.request("GET", "http://api.test/").status == 504) }
        try await proxy.isCaughtUp()
        #expect(reports.all.count == 1)
    }

    // MARK: Exchanges without a limit

    @Test func `events may come rarely, unless idle_timeout is written`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let proxy = try await ProxyInProcess(
            observer: observer(),
            answer: { exchange in
                let type = exchange.head.target == "/events" ? "Text/Event-Stream" : "text/event-streams"
                try exchange.send(
                    "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
                gate.wait()
                try exchange.send("4\r\ntwo\n\r\n0\r\n\r\n")
            },
            // As if the default of 60 s were short.
            change: { $0.upstreams[0].idleTimeout = .milliseconds(300) })
        let events = try await proxy.connect(sending: message("GET", "http://api.test/events"))
        _ = try await events.read(until: "one")
        let other = try await proxy.connect(sending: message("GET", "http://api.test/other"))
        #expect(
            try await other.readToEnd().suffix(6) == Array("one\n\r\n".utf8), "cut by the deadline of other answers")
        gate.open()
        #expect(try await events.read(until: "0\r\n\r\n").contains("two"))
        #expect(reports.all.count == 1)
    }

    @Test func `an upgraded connection may be silent, unless idle_timeout is written`() async throws {
        let far = try RawListener()
        let proxy = try await ProxyInProcess(
            upstream: "idle_timeout: 300ms",
            more: "- {host: ws.test, url: \"http://127.0.0.1:\(far.port)\", client: api, allow_plaintext: true}",
            answer: Case.begin("a/b"), change: { $0.upstreams[1].idleTimeout = .milliseconds(300) })
        let (client, end) = try await proxy.openUpgrade(far)
        let other = try await proxy.connect(sending: message())
        #expect(try await other.readToEnd().suffix(6) == Array("one\n\r\n".utf8))
        try await client.send("still")
        #expect(try await end.read(count: 5) == Array("still".utf8))
    }
}
