import TestSupport
import Testing

@Suite(
    "a connection that dies before it answers costs a program nothing, where the request may be sent again",
    .stopsProxies,
    .serialized, .timeLimit(.minutes(1)))
struct RetryTests {
    /// Answers the first request of a connection; the second one of it kills it, without an answer.
    private static func dyingOnReuse() -> RecordingOrigin.Handler {
        let connections = Recorder<Int>()
        return { exchange in
            if connections.all.contains(exchange.head.connection) { return exchange.reset() }
            connections.append(exchange.head.connection)
            try exchange.respond(body: "ok")
        }
    }

    @Test(arguments: ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"])
    func `an idempotent request without a body is sent once more, on a fresh connection`(method: String) async throws {
        let proxy = try await ProxyInProcess(answer: Self.dyingOnReuse())
        #expect(try await proxy.request().status == 200)
        #expect(try await proxy.request(method, "http://api.test/again").status == 200)
        let requests = proxy.origin.requests
        #expect(requests[1].connection == 0 && requests[2].connection > 0)
        #expect(requests.map(\.method) == ["GET", method, method])
        #expect(requests[2].target == "/again")
        #expect(
            requests.map(\.authorization)
                == (method == "TRACE" ? [["Bearer T1"], [], []] : Array(repeating: ["Bearer T1"], count: 3)))
    }

    @Test(arguments: ["PUT", "GET", "DELETE"], [true, false])
    func `an idempotent request with a body at hand is sent once more`(method: String, isChunked: Bool) async throws {
        let proxy = try await ProxyInProcess(answer: Self.dyingOnReuse())
        #expect(try await proxy.request().status == 200)
        let framing = isChunked ? "Transfer-Encoding: chunked" : "Content-Length: 4"
        let body = isChunked ? "4\r\nbody\r\n0\r\n\r\n" : "body"
        let response = try await proxy.send(
            "\(method) http://api.test/again HTTP/1.1\r\nHost: api.test\r\n\(framing)\r\n\r\n\(body)",
            method: method)
        #expect(response.status == 200)
        let requests = proxy.origin.requests
        #expect(requests.map(\.method) == ["GET", method, method])
        #expect(requests.map(\.connection) == [0, 0, 1])
        try await eventually("the body") { proxy.origin.requests[2].bodyCount == 4 }
    }

    @Test func `an idempotent request whose body is gone is not sent again`() async throws {
        let proxy = try await ProxyInProcess(upstream: "max_replay_bytes: 3", answer: Self.dyingOnReuse())
        #expect(try await proxy.request().status == 200)
        try expectProblem(try await proxy.request("PUT", body: "body"), "connection-lost")
        #expect(proxy.origin.requests.count == 2)
    }

    @Test(
        arguments: [("POST", nil), ("PATCH", nil), ("POST", ""), ("POST", "body")]
            as [(String, String?)])
    func `a request that is not idempotent is not sent again: it may have been carried out`(
        method: String, body: String?
    ) async throws {
        let proxy = try await ProxyInProcess(answer: Self.dyingOnReuse())
        #expect(try await proxy.request().status == 200)
        try expectProblem(try await proxy.request(method, body: body), "connection-lost")
        #expect(proxy.origin.requests.map(\.method) == ["GET", method])
    }

    @Test func `a request whose second connection dies, too, is not sent a third time`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            guard exchange.head.target == "/first" else { return exchange.reset() }
            try exchange.respond(body: "ok")
        }
        #expect(try await proxy.request("GET", "http://api.test/first").status == 200)
        try expectProblem(try await proxy.request(), "connection-lost")
        #expect(proxy.origin.requests.map(\.connection) == [0, 0, 1])
    }

    @Test func `a request whose new connection dies is not sent again`() async throws {
        let proxy = try await ProxyInProcess { $0.reset() }
        try expectProblem(try await proxy.request(), "connection-lost")
        #expect(proxy.origin.requests.count == 1)
    }

    @Test func `a request whose answer had begun is not sent again`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            if exchange.head.target == "/first" { return try exchange.respond(body: "ok") }
            try exchange.send("HTTP/1.1 200 OK\r\n")
            exchange.close()
        }
        #expect(try await proxy.request("GET", "http://api.test/first").status == 200)
        try expectProblem(try await proxy.request(), "response-cut")
        #expect(proxy.origin.requests.map(\.connection) == [0, 0])
    }

    @Test func `a server that closes its idle connections is no trouble for anything`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.respond(body: "ok")
            exchange.close()
        }
        for number in 0..<5 {
            #expect(try await proxy.request("POST", body: "x").text == "ok")
            try await eventually("the connection is over") { proxy.origin.connections[number].isOver }
        }
        #expect(proxy.origin.requests.count == 5)
    }
}
