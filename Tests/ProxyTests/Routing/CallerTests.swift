import Configuration
import Foundation
import Glibc
import Proxy
import Reactor
import TestSupport
import Testing

@Suite("callers: who gets which upstream", .stopsProxies, .serialized, .timeLimit(.minutes(1)))
struct CallerTests {
    private func basic(_ credentials: String) -> String {
        "Proxy-Authorization: Basic \(Data(credentials.utf8).base64EncodedString())"
    }

    /// The same host for three kinds of users: one with a token, one without, one not at all.
    private static let more = """
        - host: shared.test
          url: ORIGIN/signed
          callers: {users: [alice]}
          client: api
          allow_plaintext: true
        - host: shared.test
          url: ORIGIN/plain
          callers: {users: [bob]}
        """
    private static let users = "users: {alice: a, bob: b, carol: c}"

    @Test func `two programs get different clients for the same host, a third one none`() async throws {
        let proxy = try await ProxyInProcess(proxy: Self.users, more: Self.more)
        for user in ["alice:a", "bob:b"] {
            #expect(try await proxy.request("GET", "http://shared.test/x", fields: [basic(user)]).status == 200)
        }
        let requests = proxy.origin.requests
        #expect(requests.map(\.line) == ["GET /signed/x HTTP/1.1", "GET /plain/x HTTP/1.1"])
        #expect(requests.map(\.authorization) == [["Bearer T1"], []])
        let other = try await proxy.request("GET", "http://shared.test/x", fields: [basic("carol:c")])
        try expectProblem(other, "not-for-caller", upstream: nil)
        #expect(proxy.origin.requests.count == 2)
    }

    @Test func `a caller that an upstream does not name gets the one for everybody`() async throws {
        let more = Self.more + "\n- host: shared.test\n  url: ORIGIN/rest\n"
        let proxy = try await ProxyInProcess(proxy: Self.users, more: more)
        for user in ["carol:c", "alice:a"] {
            #expect(try await proxy.request("GET", "http://shared.test/x", fields: [basic(user)]).status == 200)
        }
        #expect(proxy.origin.requests.map(\.line) == ["GET /rest/x HTTP/1.1", "GET /signed/x HTTP/1.1"])
    }

    @Test func `a caller that a host is not for gets in by no wildcard, nor by unmatched: forward`() async throws {
        let proxy = try await ProxyInProcess(
            proxy: Self.users + "\nunmatched: forward\nprivate_networks: [127.0.0.0/8]",
            more: Self.more + "\n- host: \"*.test\"\n  url: ORIGIN/wild\n")
        let other = try await proxy.request("GET", "http://shared.test/x", fields: [basic("carol:c")])
        try expectProblem(other, "not-for-caller", upstream: nil)
        #expect(proxy.origin.connections.isEmpty)
        #expect(try await proxy.request("GET", "http://other.test/x", fields: [basic("carol:c")]).status == 200)
    }

    @Test func `each request on one connection has its own caller`() async throws {
        let proxy = try await ProxyInProcess(proxy: Self.users, more: Self.more)
        let client = try await proxy.connect()
        for (user, status) in [("alice:a", 200), ("carol:c", 403), ("bob:b", 200)] {
            try await client.send(message("GET", "http://shared.test/x", fields: [basic(user)]))
            #expect(try await client.response().status == status)
        }
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"], []])
    }

    @Test func `a uid is that of the process behind a Unix socket`() async throws {
        let folder = try TemporaryDirectory()
        let (mine, path) = (UInt32(getuid()), folder.path(of: "h.sock"))
        let proxy = try await ProxyInProcess(change: {
            $0.proxy.listen.append(.unix(path: path, mode: nil))
            $0.upstreams[0].callers.uids = [mine]
        })
        func status() async throws -> String {
            try await ChildProcess.run(
                ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", path, "http://api.test/"]
            ).output
        }
        #expect(try await status() == "200")
        // Over TCP the user is unknown.
        try expectProblem(try await proxy.request(), "not-for-caller", upstream: nil)
        let others = try await ProxyInProcess(change: {
            $0.proxy.listen = [.tcp(host: "127.0.0.1", port: 0), .unix(path: path + "2", mode: nil)]
            $0.upstreams[0].callers.uids = [mine + 1]
        })
        let curl = try await ChildProcess.run(
            ["curl", "-sS", "--unix-socket", path + "2", "http://api.test/"])
        #expect(curl.output.contains("not-for-caller"), "\(curl.transcript)")
        #expect(others.origin.connections.isEmpty)
    }

    @Test func `listeners tell callers apart, and an upstream's own always fits`() async throws {
        let folder = try TemporaryDirectory()
        let path = folder.path(of: "h.sock")
        let proxy = try await ProxyInProcess(
            upstream: "listen: 127.0.0.1:0",
            change: {
                $0.proxy.listen.append(.unix(path: path, mode: 0o600))
                $0.upstreams[0].callers.listeners = [.unix(path: path, mode: nil)]
            })
        try expectProblem(try await proxy.request(), "not-for-caller", upstream: nil)
        let client = try await RawClient.connect(unix: path)
        try await client.send(message())
        #expect(try await client.response().text == "ok")
        let own = proxy.server.addresses[2].port
        #expect(try await RawClient.exchange(port: own, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").text == "ok")
    }

    @Test func `each condition on the callers of an upstream has to fit`() async throws {
        let folder = try TemporaryDirectory()
        let path = folder.path(of: "h.sock")
        let proxy = try await ProxyInProcess(
            proxy: Self.users,
            change: {
                $0.proxy.listen.append(.unix(path: path, mode: nil))
                $0.upstreams[0].callers.listeners = [.unix(path: path, mode: nil)]
                $0.upstreams[0].callers.users = ["alice"]
            })
        for (user, status) in [("alice:a", 200), ("bob:b", 403)] {
            let client = try await RawClient.connect(unix: path)
            try await client.send(message(fields: [basic(user)]))
            #expect(try await client.response().status == status)
        }
        #expect(try await proxy.request(fields: [basic("alice:a")]).status == 403)
    }
}
