import TestSupport
import Testing

@Suite("a request passes as the program sent it, but for the token", .timeLimit(.minutes(2)))
struct ForwardingTests {
    @Test func `byte for byte, with Host rewritten, Via and the token added`() async throws {
        let running = try await ProxyAndOrigin()
        let response = try await RawClient.exchange(
            port: running.proxy.port,
            "GET http://api.test/a%2Fb//c/../d;e?x=%zz&y=a|b HTTP/1.1\r\nHost: api.test\r\nX-One:  two  \r\n"
                + "x-one: three\r\nCookie: a=b\r\n\r\n")
        #expect(response.status == 200)
        let request = try #require(running.origin.requests.first)
        #expect(request.line == "GET /a%2Fb//c/../d;e?x=%zz&y=a|b HTTP/1.1")
        #expect(
            Set(request.fields.map { "\($0)" }) == [
                "Host: \(running.origin.authority)", "X-One: two", "x-one: three", "Cookie: a=b",
                "Authorization: Bearer \(token)", "Via: 1.1 heimdallr-proxy",
            ])
        #expect(running.origin.problems.isEmpty)
    }

    @Test func `Connection can't take the token away, and hop-by-hop fields end here`() async throws {
        let running = try await ProxyAndOrigin { exchange in
            try exchange.respond(
                fields: [
                    ("Connection", "X-Private, keep-alive"), ("X-Private", "1"), ("Keep-Alive", "timeout=5"),
                    ("Proxy-Authenticate", "Basic"), ("X-Public", "2"),
                ], body: "ok")
        }
        let response = try await running.proxy.get(
            "http://api.test/",
            fields: [
                ("Connection", "Authorization, X-Mine, close"), ("Authorization", "Basic bWluZQ=="), ("X-Mine", "1"),
                ("Proxy-Authorization", "Basic c2VjcmV0"), ("Proxy-Connection", "keep-alive"), ("Keep-Alive", "1"),
                ("TE", "trailers"), ("Upgrade", "h2c"), ("X-Yours", "2"),
            ])
        #expect(response.status == 200)
        let request = try #require(running.origin.requests.first)
        #expect(request.values("Authorization") == ["Bearer \(token)"])
        #expect(request.field("X-Yours") == "2")
        for name in ["X-Mine", "Proxy-Authorization", "Proxy-Connection", "Keep-Alive", "Upgrade"] {
            #expect(request.values(name).isEmpty, "\(name)")
        }
        #expect(response.field("X-Public") == "2")
        for name in ["X-Private", "Keep-Alive", "Proxy-Authenticate"] {
            #expect(response.field(name) == nil, "\(name)")
        }
    }

    @Test(arguments: [("replace", 200, ["Bearer \(token)"]), ("keep", 200, ["Basic bWluZQ=="]), ("reject", 400, [])])
    func `the program's own Authorization, by on_existing`(rule: String, status: Int, sent: [String]) async throws {
        let running = try await ProxyAndOrigin(upstream: "on_existing: \(rule)")
        let response = try await running.proxy.get("http://api.test/", fields: [("Authorization", "Basic bWluZQ==")])
        if status == 200 { #expect(response.status == 200) } else { #expect((400..<500).contains(response.status)) }
        #expect(running.origin.requests.flatMap { $0.values("Authorization") } == sent)
    }

    @Test func `the token in another field, or in the query`() async throws {
        let field = try await ProxyAndOrigin(upstream: "inject: {header: X-Token, scheme: Key}")
        _ = try await field.proxy.get("http://api.test/x", fields: [("X-Token", "mine")])
        #expect(field.origin.requests.map { $0.values("X-Token") } == [["Key \(token)"]])
        #expect(field.origin.requests.map { $0.values("Authorization") } == [[]])
        let query = try await ProxyAndOrigin(upstream: "inject: {query: access_token}\nallow_deprecated: true")
        for target in ["/x", "/x?", "/x?a=b", "/x?access_token=mine&a=b"] {
            _ = try await query.proxy.get("http://api.test\(target)")
        }
        for request in query.origin.requests {
            let parameters = request.target.split(separator: "?").dropFirst().joined().split(separator: "&")
            #expect(
                parameters.filter { $0.hasPrefix("access_token=") } == ["access_token=\(token)"], "\(request.target)")
        }
        #expect(!query.proxy.log.contains(token))
    }

    @Test func `many requests on one connection, sent without waiting`() async throws {
        let running = try await ProxyAndOrigin { try $0.respond(body: $0.head.target) }
        let client = try await RawClient.connect(port: running.proxy.port)
        var all = ""
        for number in 0..<20 {
            let body = number % 3 == 1 ? "hello" : ""
            all +=
                "POST http://api.test/\(number) HTTP/1.1\r\nHost: api.test\r\nContent-Length: \(body.count)\r\n\r\n\(body)"
        }
        try await client.send(all)
        for number in 0..<20 { #expect(try await client.response().text == "/\(number)") }
        #expect(running.origin.requests.map(\.target) == (0..<20).map { "/\($0)" })
        // Upstream connections are kept too.
        #expect(running.origin.connections.count == 1)
    }

    @Test func `HEAD, 204 and 304 end at their head`() async throws {
        let running = try await ProxyAndOrigin { exchange in
            switch exchange.head.target {
            case "/204": try exchange.send("HTTP/1.1 204 None\r\n\r\n")
            case "/304": try exchange.send("HTTP/1.1 304 Same\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\n")
            default: try exchange.respond(body: "hello")
            }
        }
        let client = try await RawClient.connect(port: running.proxy.port)
        for (method, target, status) in [
            ("HEAD", "/", 200), ("GET", "/204", 204), ("GET", "/304", 304), ("GET", "/", 200),
        ] {
            try await client.send("\(method) http://api.test\(target) HTTP/1.1\r\nHost: api.test\r\n\r\n")
            let response = try await client.response(to: method)
            #expect(response.status == status)
            if method == "HEAD" { #expect(response.field("Content-Length") == "5") }
            if target == "/204" { #expect(response.field("Content-Length") == nil) }
        }
    }

    @Test func `a client of HTTP 1.0 gets what it can read`() async throws {
        let running = try await ProxyAndOrigin { exchange in
            try exchange.startChunked()
            try exchange.chunk("one ")
            try exchange.chunk("two")
            try exchange.lastChunk()
        }
        let response = try await RawClient.exchange(
            port: running.proxy.port, "GET http://api.test/ HTTP/1.0\r\nHost: api.test\r\n\r\n")
        #expect(response.field("Transfer-Encoding") == nil)
        #expect(response.text == "one two")
        #expect(running.origin.requests.first?.version == "HTTP/1.1")
    }

    @Test func `origin form is routed by Host`() async throws {
        let running = try await ProxyAndOrigin()
        let response = try await RawClient.exchange(
            port: running.proxy.port, "GET /x?y HTTP/1.1\r\nHost: api.test\r\n\r\n")
        #expect(response.status == 200)
        #expect(running.origin.requests.map(\.target) == ["/x?y"])
        let other = try await RawClient.exchange(
            port: running.proxy.port, "GET /x?y HTTP/1.1\r\nHost: other.test\r\n\r\n")
        #expect(other.status == 403)
    }

    @Test func `a response arrives piece by piece, not when it is whole`() async throws {
        let gate = Gate()
        let running = try await ProxyAndOrigin { exchange in
            try exchange.startChunked()
            try exchange.chunk("early")
            gate.wait()
            try exchange.chunk("late")
            try exchange.lastChunk()
        }
        defer { gate.open() }
        let client = try await RawClient.connect(port: running.proxy.port)
        try await client.send("GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
        _ = try await client.read(until: "early")
        gate.open()
        #expect(try await client.read(until: "0\r\n\r\n").contains("late"))
    }

    @Test func `an upload arrives piece by piece, not when it is whole`() async throws {
        let running = try await ProxyAndOrigin()
        let client = try await RawClient.connect(port: running.proxy.port)
        try await client.send(
            "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nearly\r\n")
        try await eventually("the first piece is there") {
            running.origin.connections.first?.bytes.contains(subsequence: "early") == true
        }
        try await client.send("4\r\nlate\r\n0\r\n\r\n")
        #expect(try await client.response(to: "POST").status == 200)
        #expect(running.origin.requests.map(\.text) == ["earlylate"])
    }

    @Test func `Expect: 100-continue is the upstream's to answer`() async throws {
        let running = try await ProxyAndOrigin { exchange in
            guard exchange.head.target == "/yes" else {
                return try exchange.send("HTTP/1.1 417 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            }
            try exchange.send("HTTP/1.1 100 Continue\r\n\r\n")
            try exchange.respond(body: try exchange.readBody().text)
        }
        let head = "HTTP/1.1\r\nHost: api.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        let client = try await RawClient.connect(port: running.proxy.port)
        try await client.send("POST http://api.test/yes \(head)")
        #expect(try await client.response(to: "POST").status == 100)
        try await client.send("hello")
        #expect(try await client.response(to: "POST").text == "hello")
        let refused = try await RawClient.exchange(
            port: running.proxy.port, "POST http://api.test/no \(head)", method: "POST")
        #expect(refused.status == 417)
    }
}

extension [UInt8] {
    fileprivate func contains(subsequence text: String) -> Bool { String(decoding: self, as: UTF8.self).contains(text) }
}
