import Foundation
import TestSupport
import Testing

@Suite("a login that belongs to a connection belongs to its program", .stopsProxies, .timeLimit(.minutes(1)))
struct ConnectionLoginTests {
    /// An origin as IIS: a connection that carried NTLM or Negotiate is its person's from then on.
    private static func proxy(
        _ upstream: String = "", proxy: String = "", more: String = ""
    ) async throws -> ProxyInProcess {
        let people = Recorder<(connection: Int, name: String)>()
        return try await ProxyInProcess(
            upstream: "on_existing: keep\n" + upstream, proxy: proxy, more: more
        ) { exchange in
            let connection = exchange.head.connection
            if let login = exchange.head.field("Authorization"), !login.hasPrefix("Bearer") {
                let words = login.split(whereSeparator: { " \t".contains($0) }).map(String.init)
                guard words.count == 2, words[1] != "begin" else {
                    return try exchange.respond(401, fields: [("WWW-Authenticate", "\(words[0]) challenge")], body: "")
                }
                people.append((connection, words[1]))
            }
            try exchange.respond(body: people.all.last { $0.connection == connection }?.name ?? "nobody")
        }
    }

    private static func get(
        _ client: RawClient, _ login: String? = nil, host: String = "api.test", fields: String = ""
    ) async throws -> RawResponse {
        let login = login.map { "Authorization: \($0)\r\n" } ?? ""
        try await client.send("GET http://\(host)/ HTTP/1.1\r\nHost: \(host)\r\n\(login)\(fields)\r\n")
        return try await client.response()
    }

    @Test(arguments: ["NTLM ", "Negotiate ", "negotiate ", "NTLM\t"])
    func `another program gets another connection, and the program keeps its own`(scheme: String) async throws {
        let proxy = try await Self.proxy()
        let alice = try await proxy.connect()
        #expect(try await Self.get(alice, "\(scheme)begin").status == 401)
        #expect(try await Self.get(alice, "\(scheme)alice").text == "alice")
        let bob = try await proxy.connect()
        #expect(try await Self.get(bob).text == "nobody")
        #expect(try await Self.get(alice).text == "alice")
        #expect(try await Self.get(bob).text == "nobody")
        #expect(Set(proxy.origin.requests.map(\.connection)) == [0, 1])
    }

    @Test func `a login's connection ends with the program's, or behind a challenge alone`() async throws {
        let proxy = try await Self.proxy()
        for login in ["NTLM alice", "Negotiate begin"] {
            let alice = try await proxy.connect()
            _ = try await Self.get(alice, login)
            let connection = try #require(proxy.origin.requests.last?.connection)
            alice.close()
            try await eventually("the end of \(login)") { proxy.origin.connections[connection].isEndedByPeer }
        }
        let bob = try await proxy.connect()
        #expect(try await Self.get(bob).text == "nobody")
    }

    @Test func `a full pool closes an idle connection of a program rather than let another one wait`() async throws {
        let proxy = try await Self.proxy("max_connections: 1")
        let alice = try await proxy.connect()
        #expect(try await Self.get(alice, "NTLM alice").text == "alice")
        let bob = try await proxy.connect()
        #expect(try await Self.get(bob).text == "nobody")
        #expect(try await Self.get(alice).text == "nobody")
        #expect(try await Self.get(alice, "NTLM alice").text == "alice")
        #expect(try await Self.get(bob).text == "nobody")
    }

    @Test func `a login of a request does not bind its connection`() async throws {
        let proxy = try await Self.proxy()
        for login in ["Basic YTpi", "Bearer own", "NTLMX alice"] {
            let one = try await proxy.connect()
            _ = try await Self.get(one, login)
            one.close()
        }
        #expect(Set(proxy.origin.requests.map(\.connection)) == [0])
    }

    @Test func `another upstream with the same address has its own connections, identity and rules`() async throws {
        let proxy = try await Self.proxy(
            more: "- {host: other.test, url: ORIGIN, allow_plaintext: true, max_connection_age: 1s}")
        let alice = try await proxy.connect()
        #expect(try await Self.get(alice, "NTLM alice").text == "alice")
        #expect(try await Self.get(alice, host: "other.test").text == "nobody")
        #expect(try await Self.get(alice, "NTLM bob", host: "other.test").text == "bob")
        #expect(try await Self.get(alice).text == "alice")
        // Time itself: the connection is too old for the other pool.
        try await Task.sleep(for: .milliseconds(1100))
        #expect(try await Self.get(alice, host: "other.test").text == "nobody")
        #expect(try await Self.get(alice).text == "alice")
    }

    @Test func `another user of the proxy on the same connection is not the one who logged in`() async throws {
        let proxy = try await Self.proxy(proxy: "users: {alice: one, bob: two}")
        func user(_ login: String) -> String {
            "Proxy-Authorization: Basic \(Data(login.utf8).base64EncodedString())\r\n"
        }
        let front = try await proxy.connect()
        #expect(try await Self.get(front, "NTLM alice", fields: user("alice:one")).text == "alice")
        #expect(try await Self.get(front, fields: user("alice:one")).text == "alice")
        #expect(try await Self.get(front, fields: user("bob:two")).text == "nobody")
    }
}
