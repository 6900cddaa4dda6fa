import TestSupport
import Testing

@Suite(
    "one connection carries many requests, and their answers in order", .stopsProxies, .serialized,
    .timeLimit(.minutes(1)))
struct OrderTests {
    @Test func `pipelined requests, problems among them, are answered in order`() async throws {
        let proxy = try await ProxyInProcess(upstream: "paths: [/v1/]") { exchange in
            if exchange.head.target == "/v1/1" { exchange.pause(.milliseconds(50)) }
            try exchange.respond(fields: [("X-Target", exchange.head.target)], body: exchange.head.target)
        }
        let client = try await proxy.connect(
            sending: message("GET", "http://api.test/v1/1") + message("GET", "http://nobody.test/")
                + message("POST", "http://api.test/v1/2", body: "hello") + message("HEAD", "http://api.test/v1/3")
                + message("GET", "http://api.test/v2") + message("GET", "http://api.test/v1/4"))
        #expect(try await client.response().text == "/v1/1")
        try expectProblem(try await client.response(), "no-upstream", upstream: nil)
        #expect(try await client.response().text == "/v1/2")
        let head = try await client.response(to: "HEAD")
        #expect(head.field("X-Target") == "/v1/3")
        #expect(head.field("Content-Length") == "5")
        try expectProblem(try await client.response(), "not-covered", upstream: nil)
        #expect(try await client.response().text == "/v1/4")
        #expect(proxy.origin.requests.map(\.target) == ["/v1/1", "/v1/2", "/v1/3", "/v1/4"])
        #expect(proxy.origin.requests[1].text == "hello")
    }

    @Test func `large answers on kept connections are whole, however often they pause`() async throws {
        let body = String(repeating: "x", count: 300_000)
        let proxy = try await ProxyInProcess { try $0.respond(body: body) }
        let client = try await proxy.connect(sending: (0..<40).map { message("GET", "http://api.test/\($0)") }.joined())
        for _ in 0..<40 { #expect(try await client.response().body.count == body.utf8.count) }
    }

    @Test func `five hundred pipelined requests are answered, though their sender reads only afterwards`() async throws
    {
        let proxy = try await ProxyInProcess { try $0.respond(body: String(repeating: $0.head.target, count: 100)) }
        let client = try await proxy.connect(receiveBuffer: 4096)
        let requests = (0..<500).map { message("GET", "http://api.test/\($0)") }.joined()
        async let sent: Void = client.send(requests)
        for number in 0..<500 {
            #expect(try await client.response().text == String(repeating: "/\(number)", count: 100))
        }
        try await sent
    }

    @Test func `a head that comes byte by byte is answered`() async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect()
        for byte in message("GET", "http://api.test/slow", fields: ["X-One: two"]).utf8 {
            try await client.send([byte])
        }
        #expect(try await client.response().status == 200)
        #expect(proxy.origin.requests.map(\.target) == ["/slow"])
    }

    @Test func `a body and the next request in one piece are told apart`() async throws {
        let proxy = try await ProxyInProcess { try $0.respond(body: try $0.readBody().text) }
        let client = try await proxy.connect(
            sending: "POST http://api.test/1 HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n" + message("POST", "http://api.test/2", body: "second"))
        #expect(try await client.response().text == "abcde")
        #expect(try await client.response().text == "second")
    }

    @Test(arguments: [
        ("HTTP/1.1", "", true), ("HTTP/1.1", "Connection: close\r\n", false),
        ("HTTP/1.1", "Connection: x, CLOSE\r\n", false),
        ("HTTP/1.0", "", false), ("HTTP/1.0", "Connection: keep-alive\r\n", true),
        ("HTTP/1.0", "Connection: keep-alive, close\r\n", false),
    ])
    func `the connection stays as long as the program wants it`(
        version: String, field: String, stays: Bool
    ) async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect(sending: "GET /1 \(version)\r\nHost: api.test\r\n\(field)\r\n")
        let response = try await client.response()
        #expect(response.text == "ok")
        if stays {
            #expect(response.field("Connection") == (version == "HTTP/1.0" ? "keep-alive" : nil))
            try await client.send("GET /2 HTTP/1.1\r\nHost: api.test\r\n\r\n")
            #expect(try await client.response().text == "ok")
        } else {
            #expect(response.field("Connection") == "close")
            #expect(try await client.readToEnd().isEmpty)
        }
    }

    @Test(arguments: [true, false])
    func `a problem leaves an HTTP 1.0 client in no doubt about the connection`(keeps: Bool) async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect(
            sending: "GET /1 HTTP/1.0\r\nHost: nobody.test\r\n\(keeps ? "Connection: keep-alive\r\n" : "")\r\n")
        let response = try await client.response()
        #expect(response.status == 403)
        if response.field("Connection") == "keep-alive" {
            try await client.send("GET /2 HTTP/1.1\r\nHost: api.test\r\n\r\n")
            #expect(try await client.response().status == 200)
        } else {
            #expect(try await client.readToEnd().isEmpty)
        }
    }

    @Test func `HTTP 1.0 gets a chunked answer as bytes to the end of the connection`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.startChunked(fields: [("Trailer", "X-End")])
            try exchange.chunk("one ")
            try exchange.chunk("two")
            try exchange.lastChunk(trailers: [("X-End", "1")])
        }
        let response = try await proxy.send("GET / HTTP/1.0\r\nHost: api.test\r\nConnection: keep-alive\r\n\r\n")
        #expect(response.text == "one two")
        #expect(response.endedByClose)
        #expect(response.field("Transfer-Encoding") == nil)
        #expect(response.field("Connection") == "close")
        #expect(proxy.origin.requests.map(\.version) == ["HTTP/1.1"])
        #expect(proxy.origin.requests.first?.values("Via") == ["1.0 heimdallr-proxy"])
    }

    @Test(arguments: [("HEAD", 200), ("GET", 204), ("GET", 304), ("HEAD", 404)])
    func `an answer without a body ends at its head, and the next answer follows`(method: String, status: Int)
        async throws
    {
        let proxy = try await ProxyInProcess { exchange in
            if exchange.head.target == "/first" {
                let length = status == 204 ? "" : "Content-Length: 1000\r\n"
                try exchange.send("HTTP/1.1 \(status) Short\r\n\(length)X-Only: head\r\n\r\n")
            } else {
                try exchange.respond(body: "next")
            }
        }
        let client = try await proxy.connect(
            sending: message(method, "http://api.test/first") + message("GET", "http://api.test/second"))
        let first = try await client.response(to: method)
        #expect(first.status == status)
        #expect(first.field("X-Only") == "head")
        #expect(first.field("Content-Length") == (status == 204 ? nil : "1000"))
        #expect(try await client.response().text == "next")
    }

    @Test func `an answer to HEAD with a body's length ends at its head, too`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.readBody()
            try exchange.respond(fields: [("X-Only", "head")], body: "never seen")
        }
        let client = try await proxy.connect(
            sending: message("HEAD", "http://api.test/first", body: "hello") + message("GET", "http://api.test/second"))
        #expect(try await client.response(to: "HEAD").field("Content-Length") == "10")
        #expect(try await client.response().text == "never seen")
        #expect(proxy.origin.requests.first?.text == "hello")
    }

    @Test func `connections to the upstream are kept for the next request, whoever sends it`() async throws {
        let proxy = try await ProxyInProcess()
        for _ in 0..<5 { _ = try await proxy.request() }
        #expect(proxy.origin.connections.count == 1)
        #expect(proxy.endpoint.requests.count == 1)
    }

    @Test func `several loops serve one port`() async throws {
        let proxy = try await ProxyInProcess(threads: 3)
        #expect(Set(try await proxy.statuses(of: 40)) == [200])
        #expect(proxy.origin.requests.count == 40)
        #expect(proxy.endpoint.requests.count == 1)
    }
}
