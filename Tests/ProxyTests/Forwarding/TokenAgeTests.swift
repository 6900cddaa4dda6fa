import Foundation
import Heimdallr
import Synchronization
import TestSupport
import Testing

@Suite(
    "a token that expires while its request waits does not leave", .stopsProxies, .serialized, .timeLimit(.minutes(1)))
struct TokenAgeTests {
    private static let life = 2

    /// Tokens that live two seconds, and when each was given.
    private final class Issue: Sendable {
        private let times = Mutex<[String: ContinuousClock.Instant]>([:])

        func endpoint() throws -> TokenEndpoint {
            try TokenEndpoint { [self] _, number in
                times.withLock { $0["Bearer T\(number + 1)"] = .now }
                return .token("T\(number + 1)", expiresIn: "\(TokenAgeTests.life)")
            }
        }

        func age(of authorization: String) -> Duration? { times.withLock { $0[authorization] }.map { .now - $0 } }
    }

    @Test(arguments: [nil, "inject: {query: access_token}\nallow_deprecated: true"])
    func `in the line for a connection`(injection: String?) async throws {
        let issue = Issue()
        let ages = Mutex<[Duration?]>([])
        let gate = Gate()
        let proxy = try await ProxyInProcess(
            upstream: "max_connections: 1\nconnect_timeout: 10s\n" + (injection ?? ""),
            endpoint: try issue.endpoint(), keeping: .init(change: { $0.refreshBefore = .zero })
        ) { exchange in
            let name =
                exchange.head.field("Authorization")
                ?? exchange.head.target.split(separator: "=").last.map { "Bearer \($0)" } ?? ""
            ages.withLock { $0.append(issue.age(of: name)) }
            if exchange.head.target.hasPrefix("/first") { gate.wait() }
            try exchange.respond(body: "ok")
        }
        async let first = proxy.request("GET", "http://api.test/first")
        try await eventually("the first is under way") { proxy.origin.requests.count == 1 }
        async let second = proxy.request("POST", "http://api.test/second", body: "the body")
        try await eventually("the first token is over") {
            issue.age(of: "Bearer T1").map { $0 > .seconds(Self.life) } == true
        }
        gate.open()
        #expect(try await first.status == 200)
        #expect(try await second.status == 200)
        let seen = ages.withLock { $0 }
        #expect(seen.count == 2)
        for age in seen { #expect(try #require(age) < .seconds(Self.life)) }
        #expect(proxy.origin.requests.last?.text == "the body")
    }

    // MARK: Behind a full socket, or a full connection

    /// A server of HTTP/2, and the proxy in front of it as `two.test`.
    private func two(
        _ issue: Issue, _ arguments: String...
    ) async throws -> (server: ChildProcess, port: UInt16, proxy: ProxyInProcess) {
        let server = try ChildProcess([try Repository.python(), Repository.fixture("h2_server.py")] + arguments)
        let port = try await server.printedPort()
        let proxy = try await ProxyInProcess(
            more: """
                - host: two.test
                  url: http://127.0.0.1:\(port)
                  client: api
                  allow_plaintext: true
                  http2: prior-knowledge
                  max_connections: 1
                  connect_timeout: 20s
                """,
            endpoint: try issue.endpoint(), keeping: .init(change: { $0.refreshBefore = .zero }), peer: server)
        return (server, port, proxy)
    }

    private func isOver(_ issue: Issue, _ token: String = "Bearer T1") async throws {
        try await eventually("the token is over") { issue.age(of: token).map { $0 > .seconds(Self.life) } == true }
    }

    private func tell(_ port: UInt16, _ word: String) async throws {
        let client = try await RawClient.connect(port: port)
        try await client.send(word)
        _ = try await client.read(until: "released")
    }

    @Test func `on an HTTP 2 connection, behind another program's upload that the server does not read`() async throws {
        let issue = Issue()
        let (server, port, proxy) = try await two(issue, "--window", "\(128 << 20)")
        let upload = try await proxy.connect()
        try await upload.send(
            "POST http://two.test/stall HTTP/1.1\r\nHost: two.test\r\nContent-Length: \(1 << 30)\r\n\r\n")
        try await eventually("the server reads nothing more") { server.output.contains("1 POST /stall") }
        let sending = Task { try await upload.send([UInt8](repeating: 0x61, count: 1 << 20), times: 64, within: .seconds(60)) }
        try await upload.isStuck()
        let waiting = try await proxy.connect(
            sending: "POST http://two.test/aged HTTP/1.1\r\nHost: two.test\r\nContent-Length: 4\r\n\r\nbody")
        try await waiting.isRead()
        try await isOver(issue)
        try await tell(port, "release")
        // The same connection: there may be no other.
        #expect(try await waiting.response().text == "1 Bearer T2")
        upload.resetOnClose()
        sending.cancel()
    }

    @Test func `on an HTTP 2 connection whose server lowers its number of streams`() async throws {
        let issue = Issue()
        let (server, port, proxy) = try await two(issue)
        let held = try await proxy.connect(sending: "GET http://two.test/hold HTTP/1.1\r\nHost: two.test\r\n\r\n")
        try await eventually("the first request") { server.output.contains("1 GET /hold") }
        // The proxy finds the request and then the server's SETTINGS, in one turn.
        let gate = Gate()
        await proxy.holdLoop(until: gate)
        let waiting = try await proxy.connect(
            sending: "POST http://two.test/aged HTTP/1.1\r\nHost: two.test\r\nContent-Length: 4\r\n\r\nbody")
        try await waiting.isDelivered()
        try await tell(port, "lower")
        gate.open()
        try await isOver(issue)
        try await tell(port, "release")
        #expect(try await held.response().text == "1")
        #expect(try await waiting.response().text == "1 Bearer T2")
    }

    /// The server answers requests that it does not read, until the head of the next one has no room in the socket.
    @Test func `on an HTTP 1 connection whose server reads nothing`() async throws {
        let server = try RawListener()
        let issue = Issue()
        let endpoint = try issue.endpoint()
        let proxy = try await ProxyInProcess(
            more: """
                - host: full.test
                  url: http://127.0.0.1:\(server.port)
                  client: api
                  allow_plaintext: true
                """,
            endpoint: endpoint, keeping: .init(change: { $0.refreshBefore = .zero }))
        let client = try await proxy.connect()
        let filling = String(repeating: "x", count: 50_000)
        let request =
            "POST http://full.test/ HTTP/1.1\r\nHost: full.test\r\nX-Fill: \(filling)\r\nContent-Length: 4\r\n\r\nbody"
        try await client.send(request)
        let first = try await server.accept()
        #expect(try await hasArrived(first, atLeast: filling.utf8.count))
        try await first.isStuck()
        let size = try first.arriving
        var answered = 0
        while try await hasArrived(first, atLeast: (answered + 1) * size) {
            try await first.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            #expect(try await client.response().status == 200)
            answered += 1
            try await client.send(request)
        }
        try await isOver(issue, "Bearer T\(endpoint.requests.count)")
        async let bytes = first.readToEnd()
        let second = try await server.accept()
        let head = try await second.read(until: "\r\n\r\n")
        let token = try #require(head.split(separator: "\r\n").first { $0.hasPrefix("Authorization: ") })
        #expect(try #require(issue.age(of: String(token.dropFirst(15)))) < .seconds(Self.life))
        #expect(try await second.read(count: 4) == Array("body".utf8))
        try await second.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        #expect(try await client.response().text == "ok")
        // The last request is there in part, without the end of its head.
        let heads = String(decoding: try await bytes, as: UTF8.self).components(separatedBy: "\r\n\r\n").count - 1
        #expect(heads == answered)
    }

    /// Whether so many bytes arrive, all of them unread. If the socket is full, they never do.
    private func hasArrived(_ client: RawClient, atLeast count: Int) async throws -> Bool {
        do {
            try await eventually("the bytes", within: .seconds(1)) { try client.arriving >= count }
            return true
        } catch { return false }
    }

    /// Takes its time for the handshakes; answers with what the request carried.
    private static let server = #"""
        import socket, ssl, sys, threading, time
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        waits = [2.7]
        def serve(raw):
            time.sleep(waits.pop() if waits else 0)
            connection = context.wrap_socket(raw, server_side=True)
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                piece = connection.recv(4096)
                if not piece:
                    return
                head += piece
            token = head.lower().split(b"authorization: ")[1].split(b"\r\n")[0]
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(token) + token)
        while True:
            raw, _ = listener.accept()
            threading.Thread(target=serve, args=(raw,), daemon=True).start()
        """#

    @Test func `in a long handshake`() async throws {
        let authority = try await PrivateCA()
        let certificate = try await authority.server()
        let server = try ChildProcess(
            ["/usr/bin/python3", "-c", Self.server, certificate.certificateFile, certificate.keyFile])
        let port = try await eventually("the server says its port") {
            server.output.hasSuffix("\n") ? UInt16(server.output.dropLast()) : nil
        }
        let issue = Issue()
        let proxy = try await ProxyInProcess(
            more: secureUpstream("secure.test", port, authority), endpoint: try issue.endpoint(),
            keeping: .init(change: { $0.refreshBefore = .zero }))
        let response = try await proxy.request("GET", "http://secure.test/")
        #expect(response.status == 200)
        #expect(response.text.lowercased() == "bearer t2")
        try await server.stop()
        withExtendedLifetime(authority) {}
    }
}
