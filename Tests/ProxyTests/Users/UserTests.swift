import Configuration
import Foundation
import Proxy
import TestSupport
import Testing

@Suite("with proxy.users, only they come in", .stopsProxies, .serialized, .timeLimit(.minutes(1)))
struct UserTests {
    private static let users = "users: {alice: \"secret of alice\", \"bób\": \"pass:wörd\"}"

    private func basic(_ credentials: String) -> String {
        "Proxy-Authorization: Basic \(Data(credentials.utf8).base64EncodedString())"
    }

    private func curl(_ proxy: ProxyInProcess, _ arguments: [String]) async throws -> ChildProcess {
        try await ChildProcess.run(
            ["curl", "-sS", "--max-time", "20", "-w", " %{http_code}", "-x", "http://127.0.0.1:\(proxy.port)"]
                + arguments
                + ["http://api.test/"], environment: ["no_proxy": nil])
    }

    @Test func `a program that does not say who it is gets 407, and nothing goes upstream`() async throws {
        let proxy = try await ProxyInProcess(proxy: Self.users)
        let response = try await proxy.request()
        try expectProblem(response, "user-required", upstream: nil)
        #expect(response.field("Proxy-Authenticate") == "Basic realm=\"heimdallr-proxy\", charset=\"UTF-8\"")
        #expect(proxy.origin.connections.isEmpty)
    }

    @Test func `the user is asked for before anything else is judged`() async throws {
        let proxy = try await ProxyInProcess(proxy: "max_body_bytes: 10B\n" + Self.users)
        for target in ["http://nobody.test/", "http://api.test/"] {
            let fields = ["Via: 1.1 heimdallr-proxy"]
            let response = try await proxy.request("POST", target, fields: fields, body: "hello world")
            #expect(response.status == 407, "\(target)")
        }
        let known = try await proxy.request(
            "POST", "http://api.test/", fields: [basic("alice:secret of alice")],
            body: "hello world")
        #expect(known.status == 413)
    }

    @Test(arguments: ["alice:secret of alice", "bób:pass:wörd"])
    func `a user of the list comes in, and its credential goes no further`(credentials: String) async throws {
        let proxy = try await ProxyInProcess(proxy: Self.users, isLogged: true)
        #expect(try await proxy.request(fields: [basic(credentials)]).text == "ok")
        let request = try #require(proxy.origin.requests.first)
        #expect(request.authorization == ["Bearer T1"])
        #expect(request.values("Proxy-Authorization") == [])
        try await eventually("a line") { proxy.log.all.count == 1 }
        #expect(proxy.log.all[0].user == String(credentials.prefix { $0 != ":" }))
    }

    @Test func `curl authenticates with --proxy-user, and not with a wrong password`() async throws {
        let proxy = try await ProxyInProcess(proxy: Self.users)
        #expect(try await curl(proxy, ["--proxy-user", "alice:secret of alice"]).output == "ok 200")
        #expect(
            try await curl(proxy, ["--proxy-anyauth", "--proxy-user", "alice:secret of alice"]).output == "ok 200")
        #expect(try await curl(proxy, ["--proxy-user", "alice:guess"]).output.hasSuffix(" 407"))
        #expect(try await curl(proxy, []).output.hasSuffix(" 407"))
        #expect(proxy.origin.requests.count == 2)
    }

    @Test(arguments: [
        ["Proxy-Authorization: Basic YWxpY2U6c2VjcmV0IG9mIGFsaWNl", "Proxy-Authorization: Basic YWxpY2U6eA=="],
        ["Proxy-Authorization: Bearer YWxpY2U6c2VjcmV0IG9mIGFsaWNl"],
        ["Proxy-Authorization: Basic YWxpY2U6c2VjcmV0IG9mIGFsaWN"],
        ["Proxy-Authorization: Basic YWxpY2U6c2VjcmV0IG9mIGFsaWNl=="],
        ["Proxy-Authorization: Basic YWxpY2U6c2VjcmV0IG9mIGFsaWNlAA=="],
        ["Proxy-Authorization: Basic YWxpY2U6"], ["Proxy-Authorization: Basic YWxpY2U="],
        ["Proxy-Authorization: Basic"], ["Proxy-Authorization: Basic Og=="],
        ["Authorization: Basic YWxpY2U6c2VjcmV0IG9mIGFsaWNl"],
        ["Connection: Proxy-Authorization"],
    ])
    func `no field but one right Basic credential gets in`(fields: [String]) async throws {
        let proxy = try await ProxyInProcess(proxy: Self.users)
        #expect(try await proxy.request(fields: fields).status == 407)
        #expect(proxy.origin.connections.isEmpty)
    }

    @Test func `each request on a connection needs its own credential`() async throws {
        let proxy = try await ProxyInProcess(proxy: Self.users)
        let client = try await proxy.connect(sending: message(fields: [basic("alice:secret of alice")]))
        #expect(try await client.response().status == 200)
        try await client.send(message())
        #expect(try await client.response().status == 407)
        try await client.send(message(fields: [basic("alice:secret of alice")]))
        #expect(try await client.response().status == 200)
    }

    @Test(arguments: [[], ["Proxy-Authorization: Basic YWxpY2U6eA=="]])
    func `behind a CONNECT that is refused, nothing is read as a request`(fields: [String]) async throws {
        let proxy = try await ProxyInProcess(proxy: Self.users)
        let client = try await proxy.connect()
        let lines = ["CONNECT api.test:443 HTTP/1.1", "Host: api.test:443"] + fields
        try await client.send(
            lines.joined(separator: "\r\n") + "\r\n\r\n" + message(fields: [basic("alice:secret of alice")]))
        let response = try await client.response()
        try expectProblem(response, "user-required", upstream: nil)
        #expect(response.field("Proxy-Authenticate")?.hasPrefix("Basic ") == true)
        #expect(response.field("Connection") == "close")
        #expect(try await client.readToEnd().isEmpty)
        #expect(proxy.origin.connections.isEmpty)
    }

    @Test func `an upstream's own listener asks for users, too`() async throws {
        let proxy = try await ProxyInProcess(upstream: "listen: 127.0.0.1:0", proxy: Self.users)
        let port = proxy.upstreamPort
        let request = "GET / HTTP/1.1\r\nHost: localhost\r\n"
        #expect(try await RawClient.exchange(port: port, request + "\r\n").status == 407)
        let known = request + basic("alice:secret of alice") + "\r\n\r\n"
        #expect(try await RawClient.exchange(port: port, known).status == 200)
    }

    @Test func `a changed secret file counts without a restart, and the old secret no more`() async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write("first\n", to: "alice")
        let proxy = try await ProxyInProcess(proxy: "users: {alice: {file: \(file)}}")
        #expect(try await proxy.request(fields: [basic("alice:first")]).status == 200)
        try folder.write("second\n", to: "alice")
        try await eventually("the changed file counts") {
            try await proxy.request(fields: [basic("alice:second")]).status == 200
        }
        #expect(try await proxy.request(fields: [basic("alice:first")]).status == 407)
        // A missing file lets no user in.
        try FileManager.default.removeItem(atPath: file)
        try await eventually("the missing file counts") {
            try await proxy.request(fields: [basic("alice:second")]).status == 407
        }
    }

    @Test func `what is pipelined behind a credential that has to be looked up is answered in order`() async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write("first", to: "alice")
        let proxy = try await ProxyInProcess(proxy: "users: {alice: {file: \(file)}}")
        try folder.write("second", to: "alice")
        // Time itself: a wrong password has the file read again once a second.
        try await Task.sleep(for: .milliseconds(1100))
        let client = try await proxy.connect()
        let requests = ["second", "first", "second"].map { message(fields: [basic("alice:\($0)")]) }
        try await client.send(requests.joined())
        for status in [200, 407, 200] { #expect(try await client.response().status == status) }
        // A client that leaves does not affect others.
        try await Task.sleep(for: .milliseconds(1100))
        let leaver = try await proxy.connect(sending: message(fields: [basic("alice:third")]))
        leaver.close()
        #expect(try await proxy.request(fields: [basic("alice:second")]).status == 200)
    }

    @Test func `an upgrade needs a credential like any request, and it goes no further`() async throws {
        let (proxy, far) = try await ProxyInProcess.upgrading(proxy: Self.users)
        let stranger = try await proxy.connect(sending: handshake() + "\u{81}\u{85}GET / HTTP/1.1\r\n\r\n")
        try expectProblem(try await stranger.response(), "user-required", upstream: nil)
        #expect(try await stranger.readToEnd().isEmpty)
        let client = try await proxy.connect(sending: handshake(fields: [basic("alice:secret of alice")]))
        let end = try await far.accept()
        let head = try await end.read(until: "\r\n\r\n")
        #expect(head.contains("Authorization: Bearer T1\r\n") && !head.lowercased().contains("proxy-authorization"))
        try await end.send(agreement + "\r\n")
        #expect(try await client.response().status == 101)
    }

    @Test(arguments: [("one\ntwo", "the password has a line end inside"), ("\n", "is empty")])
    func `a secret that nobody could send is an error at start`(content: String, message: String) async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write("good", to: "alice")
        await #expect {
            _ = try await ProxyInProcess(
                proxy: "users: {alice: {file: \(file)}}",
                change: { _ in _ = try? folder.write(content, to: "alice") })
        } throws: {
            "\($0)".contains("proxy.users.alice: ") && "\($0)".contains(message)
        }
    }

    @Test func `a secret may be in ISO 8859-1, as may what is sent`() async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write([0x70, 0xE9, 0x0A], to: "alice")
        let proxy = try await ProxyInProcess(proxy: "users: {alice: {file: \(file)}}")
        for password: [UInt8] in [[0x70, 0xE9], Array("pé".utf8)] {
            let credentials = Data(Array("alice:".utf8) + password).base64EncodedString()
            #expect(try await proxy.request(fields: ["Proxy-Authorization: Basic \(credentials)"]).status == 200)
        }
    }

    @Test func `without the secrets of its users the proxy does not start`() async throws {
        let (configuration, _) = try Configuration.parse(
            yaml: "proxy: {listen: 127.0.0.1:0, users: {alice: x}, unmatched: forward}", file: "t.yaml",
            environment: [:])
        await #expect(throws: ProxyServer.ListenError.self) {
            _ = try await ProxyServer(configuration, clients: [:], loops: [], observer: ProxyObserver())
        }
    }
}
