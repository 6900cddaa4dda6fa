import TestSupport
import Testing

@Suite(
    "trailers of requests pass as trailers, never as fields, and not the forbidden ones (RFC 9110, 6.5)", .stopsProxies,
    .serialized, .timeLimit(.minutes(1)))
struct RequestTrailerTests {
    private static func request(_ trailers: [String], fields: [String] = [], body: String = "abcde") -> String {
        let head = ["POST http://api.test/up HTTP/1.1", "Host: api.test", "Transfer-Encoding: chunked"] + fields
        let size = String(body.utf8.count, radix: 16)
        return head.joined(separator: "\r\n") + "\r\n\r\n\(size)\r\n\(body)\r\n0\r\n"
            + trailers.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    @Test func `a request's trailers arrive as they came, byte for byte, behind the last chunk`() async throws {
        let proxy = try await ProxyInProcess()
        #expect(
            try await proxy.send(
                Self.request(
                    ["X-Checksum: abc==", "x-two:  b  ", "x-two: c", "X-Empty:", "ETag: \"x\""],
                    fields: ["Trailer: X-Checksum", "TE: trailers"])
            ).status == 200)
        let request = try #require(try await proxy.origin.completeRequests(1).first)
        #expect(request.text == "abcde")
        #expect(
            request.trailers.map(\.description)
                == ["X-Checksum: abc==", "x-two: b", "x-two: c", "X-Empty: ", "ETag: \"x\""])
        #expect(request.values("X-Checksum").isEmpty)
        #expect(request.values("Trailer").isEmpty && request.values("TE").isEmpty)
        let bytes = String(decoding: try #require(proxy.origin.connections.first).bytes, as: UTF8.self)
        #expect(
            bytes.hasSuffix(
                "\r\n0\r\nX-Checksum: abc==\r\nx-two: b\r\nx-two: c\r\nX-Empty: \r\nETag: \"x\"\r\n\r\n"))
        #expect(proxy.origin.problems.isEmpty)
    }

    @Test func `each request has its own trailers, also on one kept connection`() async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect()
        for trailers in [["A: 1"], [], ["B: 2"], ["A: 3", "C: 4"], []] {
            try await client.send(Self.request(trailers))
            #expect(try await client.response().status == 200)
        }
        let requests = try await proxy.origin.completeRequests(5)
        #expect(
            requests.map { $0.trailers.map(\.description) } == [["A: 1"], [], ["B: 2"], ["A: 3", "C: 4"], []])
        #expect(Set(requests.map(\.connection)) == [0])
    }

    @Test(arguments: [
        "Content-Length: 3", "Transfer-Encoding: chunked", "Host: evil.test", "Authorization: Bearer mine",
        "Proxy-Authorization: Basic eA==", "Proxy-Anything: x", "Cookie: a=b", "Connection: close", "TE: trailers",
        "Trailer: x", "Upgrade: h2c", "Keep-Alive: 1", "HTTP2-Settings: x", "Content-Type: text/html",
        "Content_Length: 3", "Transfer_Encoding: chunked", "Content.Type: text/html", "X.Forwarded.For: x",
        "Content-Encoding: gzip", "Content-Range: bytes 0-1/2",
        "Via: 1.1 x", "Max-Forwards: 1", "Max_Forwards: 1", "Expect: 100-continue", "Range: bytes=0-1",
        "If-Match: *", "Cache-Control: no-store", "Forwarded: for=x", "X-Forwarded-For: x", "X_Forwarded_For: x",
        "Origin: http://x", "Sec-Fetch-Site: none", "Connected: named in Connection",
    ])
    func `trailers that decide framing, routing, authentication or the connection are left out`(trailer: String)
        async throws
    {
        let proxy = try await ProxyInProcess()
        #expect(
            try await proxy.send(Self.request(["A: 1", trailer, "B: 2"], fields: ["Connection: connected"])).status
                == 200)
        let request = try #require(try await proxy.origin.completeRequests(1).first)
        #expect(request.trailers.map(\.description) == ["A: 1", "B: 2"])
        #expect(request.authorization == ["Bearer T1"])
        #expect(request.framing == .chunked)
    }

    @Test(arguments: ["x-token: mine", "X_Token: mine"])
    func `no trailer stands in for the token`(line: String) async throws {
        let proxy = try await ProxyInProcess(upstream: "inject: {header: X-Token, scheme: Key}")
        #expect(try await proxy.send(Self.request([line, "B: 2"], fields: [line])).status == 200)
        let request = try #require(try await proxy.origin.completeRequests(1).first)
        #expect(request.trailers.map(\.description) == ["B: 2"])
        #expect(request.values("X-Token") == ["Key T1"])
        #expect(request.values("X_Token").isEmpty)
    }

    @Test func `a request that is sent again has its trailers again`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            let request = try exchange.readBody()
            let isRefused = request.field("Authorization") == "Bearer T1"
            try exchange.respond(isRefused ? 401 : 200, body: request.text)
        }
        let client = try await proxy.connect(sending: Self.request(["A: 1"]) + message())
        #expect(try await client.response().text == "abcde")
        #expect(try await client.response().status == 200)
        let requests = try await proxy.origin.completeRequests(3)
        #expect(requests.map { $0.trailers.map(\.description) } == [["A: 1"], ["A: 1"], []])
        #expect(requests.map(\.text) == ["abcde", "abcde", ""])
    }

    @Test func `trailers follow a body that came in pieces, themselves in pieces`() async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect()
        let bytes = Array(Self.request(["X-Checksum: abc"]).utf8)
        try await client.send(Array(bytes[..<(bytes.count - 20)]))
        try await eventually("the body at the origin") { proxy.origin.requests.first?.text == "abcde" }
        for byte in bytes[(bytes.count - 20)...] { try await client.send([byte]) }
        #expect(try await client.response().status == 200)
        let request = try #require(try await proxy.origin.completeRequests(1).first)
        #expect(request.trailers.map(\.description) == ["X-Checksum: abc"])
    }
}
