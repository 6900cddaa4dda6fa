import Proxy
import Reactor
import TestSupport
import Testing

@Suite("a record says what took how long", .stopsProxies, .timeLimit(.minutes(2)))
struct ExchangeTimesTests {
    private static let pause = Duration.milliseconds(150)

    /// nginx with HTTP/2, in front of the proxy's own origin; nothing else is known to be slow.
    private static func secure(_ origin: RecordingOrigin) async throws -> Nginx {
        try await Nginx.secure(locations: "location / { proxy_http_version 1.1; proxy_pass \(origin.url); }")
    }

    private static func upstreams(_ nginx: Nginx) -> String {
        secureUpstream("two.test", nginx.httpsPort, nginx.authority, "http2: true")
    }

    private static func slow(_ exchange: OriginExchange) throws {
        exchange.pause(pause)
        try exchange.respond(body: "ok")
    }

    /// The records of requests that were sent one after the other.
    private func records(
        _ proxy: ProxyInProcess, _ requests: [String]
    ) async throws -> [RequestRecord] {
        let client = try await proxy.connect()
        for (index, request) in requests.enumerated() {
            try await client.send(request)
            _ = try await client.response()
            try await eventually("a record") { proxy.log.all.count == index + 1 }
        }
        return proxy.log.all
    }

    @Test(arguments: ["api.test", "two.test"])
    func `a record has the times of a new connection and of a kept one, over HTTP 1 and 2`(host: String) async throws {
        let origin = try RecordingOrigin { try Self.slow($0) }
        let nginx = try await Self.secure(origin)
        let proxy = try await ProxyInProcess(more: Self.upstreams(nginx), isLogged: true) {
            try Self.slow($0)
        }
        let before = WallTime.now
        let all = try await records(proxy, Array(repeating: message("GET", "http://\(host)/"), count: 2))
        let after = WallTime.now
        #expect(all.map(\.status) == [200, 200])
        #expect(all.map(\.isReused) == [false, true])
        #expect(all[0].connect != nil && all[1].connect == nil)
        for record in all {
            let firstByte = try #require(record.firstByte)
            #expect(firstByte >= Self.pause && firstByte <= record.duration)
            #expect(!record.wasReplayed && record.errorClass == nil)
            #expect(!(record.startedAt + .milliseconds(50)).isBefore(before) && record.startedAt.isBefore(after))
        }
        // The first one waited for its token, which was at hand for the second.
        let wait = try #require(all[0].tokenWait)
        #expect(wait + (all[0].connect ?? .zero) + (all[0].firstByte ?? .zero) <= all[0].duration)
        #expect(all[1].tokenWait == nil)
        #expect(all[0].startedAt.isBefore(all[1].startedAt))
    }

    @Test(arguments: ["api.test", "two.test"])
    func `the wait for a token does not count as one for the upstream`(host: String) async throws {
        let origin = try RecordingOrigin()
        let nginx = try await Self.secure(origin)
        let endpoint = try TokenEndpoint { _, _ in .token("T1", delay: Self.pause) }
        let proxy = try await ProxyInProcess(
            more: Self.upstreams(nginx), endpoint: endpoint, isLogged: true)
        let record = try #require(try await records(proxy, [message("GET", "http://\(host)/")]).first)
        #expect(try #require(record.tokenWait) >= Self.pause)
        #expect(try #require(record.connect) < record.duration - Self.pause + .milliseconds(1))
        #expect(try #require(record.firstByte) < record.duration - Self.pause + .milliseconds(1))
    }

    @Test(arguments: ["api.test", "two.test"])
    func `a record says that its request was sent again with a new token`(host: String) async throws {
        let answer: RecordingOrigin.Handler = {
            try $0.respond($0.head.authorization.first == "Bearer T1" ? 401 : 200)
        }
        let origin = try RecordingOrigin(answer)
        let nginx = try await Self.secure(origin)
        let proxy = try await ProxyInProcess(
            more: Self.upstreams(nginx), isLogged: true, answer: answer)
        let all = try await records(proxy, Array(repeating: message("GET", "http://\(host)/"), count: 2))
        #expect(all.map(\.status) == [200, 200])
        #expect(all.map(\.wasReplayed) == [true, false])
        // Of the last try.
        #expect(all.map(\.isReused) == [true, true])
        #expect(all.allSatisfy { $0.connect == nil && $0.firstByte != nil })
    }

    @Test func `a record says that its request was sent again because its kept connection had died`() async throws {
        let proxy = try await ProxyInProcess(isLogged: true) { exchange in
            // The second request of a connection finds it closed.
            if exchange.head.target == "/b", exchange.head.connection == 0 { return exchange.close() }
            try exchange.respond(body: "ok")
        }
        let all = try await records(
            proxy, [message("GET", "http://api.test/a"), message("GET", "http://api.test/b")])
        #expect(all.map(\.status) == [200, 200])
        #expect(all.map(\.wasReplayed) == [false, true])
        #expect(all.map(\.isReused) == [false, false])
    }

    @Test func `the time of an interim answer is not that of the answer`() async throws {
        let proxy = try await ProxyInProcess(isLogged: true) { exchange in
            try exchange.send("HTTP/1.1 103 Early Hints\r\n\r\n")
            exchange.pause(Self.pause)
            try exchange.respond(body: "ok")
        }
        let client = try await proxy.connect(sending: message())
        _ = try await client.read(until: "ok")
        let record = try await eventually("the record") { proxy.log.all.first }
        #expect(try #require(record.firstByte) >= Self.pause)
    }

    @Test func `a record of a failure or a cut answer has the word of Proxy-Status`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: "methods: [GET]\nidle_timeout: 300ms",
            more: "- {host: closed.test, url: \"http://127.0.0.1:1\"}", isLogged: true
        ) { exchange in
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfirst"
            switch exchange.head.target {
            case "/silent": exchange.close()
            case "/cut":
                try exchange.send(head)
                exchange.close()
            default:
                try exchange.send(head)
                _ = exchange.waitForPeerToLeave()
            }
        }
        let cases: [(request: String, isCut: Bool, error: String)] = [
            (message("DELETE"), false, "http_request_denied"),
            (message("GET", "http://closed.test/"), false, "connection_refused"),
            (message("GET", "http://api.test/silent"), false, "connection_terminated"),
            (message("GET", "http://api.test/cut"), true, "http_response_incomplete"),
            (message("GET", "http://api.test/stalls"), true, "connection_read_timeout"),
            ("nonsense\r\n\r\n", false, "http_request_error"),
        ]
        for (index, one) in cases.enumerated() {
            let client = try await proxy.connect(sending: one.request)
            if !one.isCut {
                #expect(
                    try await client.response().field("Proxy-Status") == "heimdallr-proxy; error=\(one.error)")
            }
            try await eventually("the record") { proxy.log.all.count == index + 1 }
            #expect(proxy.log.all[index].errorClass == one.error)
            #expect((proxy.log.all[index].status == 0) == one.isCut)
        }
        // Nothing was asked of an upstream, or nothing could be.
        for index in [0, 1, 5] {
            #expect(proxy.log.all[index].isReused == nil && proxy.log.all[index].connect == nil)
            #expect(proxy.log.all[index].firstByte == nil)
        }
        #expect(proxy.log.all[2].isReused == false && proxy.log.all[2].firstByte == nil)
    }

    @Test func `a tunnel's record says that it has a connection of its own`() async throws {
        let far = try RawListener()
        let proxy = try await ProxyInProcess.tunnelling("\"127.0.0.1:\(far.port)\"", isLogged: true)
        let (client, end) = try await proxy.openTunnel(to: far)
        client.close()
        end.close()
        let record = try await eventually("the record") { proxy.log.all.first }
        #expect(record.isReused == false && record.connect != nil && record.firstByte == nil)
    }
}

extension WallTime {
    fileprivate func isBefore(_ other: WallTime) -> Bool {
        (seconds, nanoseconds) <= (other.seconds, other.nanoseconds)
    }
}
