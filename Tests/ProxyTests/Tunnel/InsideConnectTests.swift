import Proxy
import TestSupport
import Testing

@Suite("HTTP inside CONNECT to a listed host is served", .stopsProxies, .timeLimit(.minutes(1)))
struct InsideConnectTests {
    private static func get(_ host: String = "api.test", _ path: String = "/", fields: String = "") -> String {
        "GET \(path) HTTP/1.1\r\nHost: \(host)\r\n\(fields)\r\n"
    }

    /// Name of the event, and what the operator is told.
    private static func noting(_ ends: Recorder<String>) -> ProxyObserver {
        var observer = ProxyObserver()
        observer.connectEnded = { ends.append("\(String(decoding: $0, as: UTF8.self)): \($1)") }
        return observer
    }

    /// - Returns: a client whose CONNECT was answered.
    private func open(
        _ proxy: ProxyInProcess, to authority: String = "api.test:80", fields: String = ""
    ) async throws -> RawClient {
        let client = try await proxy.connect(sending: connectRequest(authority, fields: fields))
        let answer = try await client.response(to: "CONNECT")
        #expect(answer.status == 200)
        #expect(answer.fields.isEmpty)
        return client
    }

    @Test func `requests inside CONNECT get the token, one after the other`() async throws {
        let proxy = try await ProxyInProcess(isLogged: true)
        let client = try await open(proxy)
        for path in ["/a", "/b"] {
            try await client.send(Self.get("api.test", path))
            #expect(try await client.response().text == "ok")
        }
        try await client.send("POST /c HTTP/1.1\r\nHost: api.test:80\r\nContent-Length: 4\r\n\r\nbody")
        #expect(try await client.response().status == 200)
        let requests = proxy.origin.requests
        #expect(requests.map(\.target) == ["/a", "/b", "/c"])
        #expect(requests.allSatisfy { $0.authorization == ["Bearer T1"] })
        #expect(requests.last?.body == Array("body".utf8))
        #expect(proxy.log.all.map { String(decoding: $0.method, as: UTF8.self) } == ["CONNECT", "GET", "GET", "POST"])
        #expect(proxy.log.all.map(\.status) == [200, 200, 200, 200])
    }

    @Test func `requests sent with the CONNECT, or byte by byte, are served`() async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect(
            sending: connectRequest("api.test:80") + Self.get() + Self.get("api.test", "/second"))
        #expect(try await client.response(to: "CONNECT").status == 200)
        #expect(try await client.response().status == 200)
        #expect(try await client.response().status == 200)
        // A CONNECT inside a CONNECT.
        try await client.send(connectRequest("api.test:80"))
        #expect(try await client.response(to: "CONNECT").status == 403)
        #expect(try await client.readToEnd().isEmpty)
        let slow = try await proxy.connect()
        for byte in (connectRequest("api.test:80") + Self.get()).utf8 { try await slow.send([byte]) }
        #expect(try await slow.response(to: "CONNECT").status == 200)
        #expect(try await slow.response().text == "ok")
    }

    @Test func `an absolute target, a browser's fields and an upgrade are served inside CONNECT`() async throws {
        let proxy = try await ProxyInProcess()
        let client = try await open(proxy)
        try await client.send(message("GET", "http://api.test/absolute", fields: ["Origin: http://page.test"]))
        #expect(try await client.response().status == 200)
        try await client.send(Self.get(fields: "Origin: http://page.test\r\nSec-Fetch-Site: cross-site\r\n"))
        #expect(try await client.response().status == 200)
        let (upgrading, far) = try await ProxyInProcess.upgrading()
        let socket = try await open(upgrading, to: "ws.test:80")
        try await socket.send(
            Self.get(
                "ws.test", "/chat", fields: "Connection: Upgrade\r\nUpgrade: websocket\r\nOrigin: http://ws.test\r\n"))
        let end = try await far.accept()
        #expect(try await end.read(until: "\r\n\r\n").contains("Authorization: Bearer T1\r\n"))
        try await end.send(agreement + "\r\n")
        #expect(try await socket.response().status == 101)
        try await socket.send("frame")
        #expect(try await end.read(count: 5) == Array("frame".utf8))
    }

    @Test(arguments: [
        ("api.test:80", "two.test"), ("api.test:80", "api.test:8080"), ("api.test:80", "sub.api.test"),
        ("127.0.0.1:80", "nobody.test"), ("127.0.0.1:80", "127.0.0.1"), ("127.0.0.1:80", "api.test:443"),
        ("[::1]:80", "api.test:8080"),
    ])
    func `a request inside CONNECT to another host or port is refused`(connect: String, host: String) async throws {
        let proxy = try await ProxyInProcess(
            proxy: "unmatched: forward",
            more: "- {host: two.test, url: ORIGIN, client: api, allow_plaintext: true}")
        let client = try await open(proxy, to: connect)
        try await client.send(Self.get(host))
        try expectProblem(try await client.response(), "other-authority", upstream: nil)
        #expect(try await client.readToEnd().isEmpty)
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test(arguments: ["127.0.0.1:80", "[2001:db8::1]:80", "10.0.0.1:8080"])
    func `where CONNECT names an address, Host picks among listed hosts`(connect: String) async throws {
        let proxy = try await ProxyInProcess(
            more: "- {host: 'api.test:8080', url: ORIGIN, client: api, allow_plaintext: true}")
        let client = try await open(proxy, to: connect)
        try await client.send(Self.get(connect.hasSuffix(":8080") ? "api.test:8080" : "api.test"))
        #expect(try await client.response().status == 200)
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"]])
        #expect(try await proxy.send(connectRequest("127.0.0.1:81"), method: "CONNECT").status == 403)
    }

    @Test func `requests inside CONNECT are those of its user`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: "callers: {users: [alice]}", proxy: "users: {alice: sesame, bob: open}")
        for (word, status) in [("YWxpY2U6c2VzYW1l", 200), ("Ym9iOm9wZW4=", 403)] {
            let client = try await open(proxy, fields: "Proxy-Authorization: Basic \(word)\r\n")
            try await client.send(Self.get())
            #expect(try await client.response().status == status)
        }
        let unnamed = try await proxy.send(connectRequest("api.test:80") + Self.get(), method: "CONNECT")
        #expect(unnamed.status == 407)
        #expect(proxy.origin.requests.count == 1)
    }

    // MARK: What is no HTTP/1.1

    @Test func `TLS inside CONNECT ends with an alert and a log line, where it is not tunnelled`() async throws {
        let ends = Recorder<String>()
        let proxy = try await ProxyInProcess(
            more: "- {host: 'api.test:8443', url: ORIGIN, client: api, allow_plaintext: true}",
            observer: Self.noting(ends), isLogged: true)
        let client = try await open(proxy, to: "api.test:8443")
        try await client.send([0x16, 3, 1, 0, 5])
        #expect(try await client.readToEnd() == [0x15, 3, 3, 0, 2, 2, 49])
        try await eventually("its records") { ends.all.count == 1 && proxy.log.all.count == 1 }
        #expect(ends.all[0].hasPrefix("api.test:8443: No token can be put on a request that TLS hides"))
        #expect(proxy.log.all[0].status == 200)
        #expect(proxy.log.all[0].reason == "connect-refused")
    }

    @Test func `TLS is tunnelled where tunnels say so, and HTTP is still served`() async throws {
        let far = try RawListener()
        let proxy = try await ProxyInProcess.tunnelling(
            "127.0.0.1:\(far.port)",
            more: "- {host: '127.0.0.1:\(far.port)', url: ORIGIN, client: api, allow_plaintext: true}")
        let client = try await open(proxy, to: "127.0.0.1:\(far.port)")
        try await client.send([0x16, 3, 1])
        let end = try await far.accept()
        #expect(try await end.read(count: 3) == [0x16, 3, 1])
        try await end.send("back")
        end.finishSending()
        #expect(try await client.readToEnd() == Array("back".utf8))
        client.close()
        let other = try await open(proxy, to: "127.0.0.1:\(far.port)")
        try await other.send(Self.get("127.0.0.1:\(far.port)"))
        #expect(try await other.response().status == 200)
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"]])
    }

    @Test func `a tunnel that can't be dialled behind the 200 is cut`() async throws {
        var far: RawListener? = try RawListener()
        let port = try #require(far?.port)
        far = nil
        let proxy = try await ProxyInProcess.tunnelling(
            "127.0.0.1:\(port)",
            more: "- {host: '127.0.0.1:\(port)', url: ORIGIN, client: api, allow_plaintext: true}",
            isLogged: true)
        let client = try await open(proxy, to: "127.0.0.1:\(port)")
        try await client.send([0x16, 3, 1])
        #expect(try await client.readToEnd().isEmpty)
        try await eventually("its record") { proxy.log.all.count == 1 }
        #expect(proxy.log.all[0].errorClass == "connection_refused")
    }

    @Test func `a silent CONNECT ends after header_timeout, and one that the client ends at once`() async throws {
        let ends = Recorder<String>()
        let proxy = try await ProxyInProcess(proxy: "header_timeout: 1s", observer: Self.noting(ends))
        let silent = try await open(proxy)
        #expect(try await silent.readToEnd().isEmpty)
        #expect(ends.all == ["api.test:80: Nothing came inside CONNECT within proxy.header_timeout."])
        let ended = try await open(proxy)
        ended.finishSending()
        #expect(try await ended.readToEnd().isEmpty)
        #expect(ends.all.count == 1)
        try await proxy.isOver()
    }

    @Test(arguments: ["\u{0}", "\u{80}", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "SSH-2.0-x\r\n"])
    func `other bytes inside CONNECT get a 400`(bytes: String) async throws {
        let proxy = try await ProxyInProcess()
        let client = try await open(proxy)
        try await client.send(bytes + "\r\n\r\n")
        #expect(try await client.response().status == 400)
        #expect(try await client.readToEnd().isEmpty)
    }
}
