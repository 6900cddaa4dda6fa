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

        var count: Int { times.withLock { $0.count } }

        func age(of authorization: String) -> Duration? { times.withLock { $0[authorization] }.map { .now - $0 } }
    }

    @Test(arguments: [nil, "inject: {query: access_token}\nallow_deprecated: true"])
    func `a token that expires in the line for a connection does not leave`(injection: String?) async throws {
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

    // MARK: Behind a full socket

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

    /// Waits until all tokens so far are over.
    /// - Returns: their number.
    private func isOver(_ issue: Issue) async throws -> Int {
        let count = issue.count
        try await eventually("the tokens are over") {
            // The proxy counts from its own clock's reading of the answer, a little later.
            issue.age(of: "Bearer T\(count)").map { $0 > .milliseconds(Self.life * 1000 + 300) } == true
        }
        return count
    }

    /// The number N in an answer `1 Bearer TN`.
    private func token(in response: RawResponse) throws -> Int {
        try #require(response.text.hasPrefix("1 Bearer T"), "\(response.text)")
        return try #require(Int(response.text.dropFirst(10)))
    }

    private func tell(_ port: UInt16, _ word: String) async throws {
        let client = try await RawClient.connect(port: port)
        try await client.send(word)
        _ = try await client.read(until: "released")
    }

    @Test func `a token that expires behind another program's upload over HTTP 2 does not leave`() async throws {
        let issue = Issue()
        let (server, port, proxy) = try await two(issue, "--window", "\(128 << 20)")
        let upload = try await proxy.connect()
        try await upload.send(
            "POST http://two.test/stall HTTP/1.1\r\nHost: two.test\r\nContent-Length: \(1 << 30)\r\n\r\n")
        try await eventually("the server reads nothing more") { server.output.contains("1 POST /stall") }
        let sending = Task {
            try await upload.send([UInt8](repeating: 0x61, count: 1 << 20), times: 64, within: .seconds(60))
        }
        try await upload.isStuck()
        let waiting = try await proxy.connect(
            sending: "POST http://two.test/aged HTTP/1.1\r\nHost: two.test\r\nContent-Length: 4\r\n\r\nbody")
        try await waiting.isRead()
        let former = try await isOver(issue)
        try await tell(port, "release")
        // The same connection: there may be no other.
        #expect(try token(in: try await waiting.response()) > former)
        upload.resetOnClose()
        sending.cancel()
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

    @Test func `a token that expires during a long handshake does not leave`() async throws {
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
