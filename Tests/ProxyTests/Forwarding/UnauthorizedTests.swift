import Configuration
import Heimdallr
import TestSupport
import Testing

@Suite("a refused token is replaced, and the request sent once more", .stopsProxies, .timeLimit(.minutes(1)))
struct UnauthorizedTests {
    /// Refuses T1 with that challenge (`nil`: none), takes every other token.
    private static func refusing(_ challenge: String?, status: Int = 401) -> RecordingOrigin.Handler {
        { exchange in
            let body = try exchange.readBody().text
            guard exchange.head.field("Authorization") == "Bearer T1" else {
                return try exchange.respond(body: "welcome \(body)")
            }
            try exchange.respond(
                status, fields: challenge.map { [("WWW-Authenticate", $0)] } ?? [], body: "no \(body)")
        }
    }

    @Test(arguments: ["GET", "POST", "PUT", "DELETE", "PATCH", "BREW"])
    func `a refused request of any method is sent once more with its body and a new token`(method: String) async throws
    {
        let proxy = try await ProxyInProcess(answer: Self.refusing("Bearer error=\"invalid_token\""))
        let body = method == "GET" ? nil : "the body"
        let response = try await proxy.request(method, "http://api.test/x?y", fields: ["X-One: two"], body: body)
        #expect(response.status == 200)
        #expect(response.text == "welcome \(body ?? "")")
        let requests = proxy.origin.requests
        #expect(requests.map(\.authorization) == [["Bearer T1"], ["Bearer T2"]])
        #expect(requests.map(\.line) == ["\(method) /x?y HTTP/1.1", "\(method) /x?y HTTP/1.1"])
        #expect(requests.map(\.text) == [body ?? "", body ?? ""])
        #expect(requests.map { $0.values("X-One") } == [["two"], ["two"]])
        #expect(proxy.endpoint.requests.count == 2)
    }

    @Test func `a refused request with a chunked body is sent once more, too`() async throws {
        let proxy = try await ProxyInProcess(answer: Self.refusing("Bearer"))
        let client = try await proxy.connect(
            sending: "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" + message())
        #expect(try await client.response().text == "welcome abcde")
        #expect(try await client.response().text == "welcome ")
        #expect(proxy.origin.requests.map(\.text) == ["abcde", "abcde", ""])
    }

    @Test(
        arguments: [
            (nil, true), ("Bearer", true), ("Bearer realm=\"x\"", true), ("bearer error=invalid_token", true),
            ("Basic realm=\"x\", Bearer realm=\"y\", error=\"invalid_token\"", true), ("Basic realm=\"x\"", false),
            ("Bearer error=\"insufficient_scope\"", false), ("Bearer error=\"invalid_request\"", false),
            ("Basic realm=\"Bearer error=invalid_token\"", false), ("DPoP error=\"invalid_token\"", false),
            ("Basic realm=\"unclosed", true), ("Token", true), ("Bearer realm=\"api\", error=\"expired_token\"", true),
            ("Bearer authorization_uri=https://login.example/authorize, resource_id=https://org.example/", true),
            ("OAuth \"Facebook Platform\" \"invalid_token\" \"Error validating access token\"", true),
        ] as [(String?, Bool)])
    func `a challenge is parsed, not searched, to decide about the token`(challenge: String?, replayed: Bool)
        async throws
    {
        let proxy = try await ProxyInProcess(answer: Self.refusing(challenge))
        let response = try await proxy.request()
        #expect(response.status == (replayed ? 200 : 401))
        #expect(response.field("WWW-Authenticate") == (replayed ? nil : challenge))
        #expect(proxy.origin.requests.count == (replayed ? 2 : 1))
        // A token that was not at fault stays.
        #expect(try await proxy.request().status == (replayed ? 200 : 401))
        #expect(proxy.endpoint.requests.count == (replayed ? 2 : 1))
    }

    @Test(arguments: [(403, "token_expired", true), (403, "forbidden", false), (404, "token_expired", false)])
    func `an answer that token_rejected names is like a 401, and no other one`(
        status: Int, reason: String, replayed: Bool
    ) async throws {
        let proxy = try await ProxyInProcess(
            upstream: "token_rejected: {status: [400, 403], header: {X-Reason: [token*, session*]}}"
        ) { exchange in
            guard exchange.head.field("Authorization") == "Bearer T1" else {
                return try exchange.respond(body: "welcome")
            }
            try exchange.respond(status, fields: [("X-Reason", "none"), ("X-Reason", reason)], body: "no")
        }
        #expect(try await proxy.request().status == (replayed ? 200 : status))
        #expect(proxy.endpoint.requests.count == (replayed ? 2 : 1))
    }

    @Test func `a 403 passes, and the token stays`() async throws {
        let proxy = try await ProxyInProcess(answer: Self.refusing("Bearer error=\"invalid_token\"", status: 403))
        #expect(try await proxy.request().status == 403)
        #expect(try await proxy.request().status == 403)
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"], ["Bearer T1"]])
        #expect(proxy.endpoint.requests.count == 1)
    }

    @Test func `a request that is refused with the new token, too, is not sent a third time`() async throws {
        let proxy = try await ProxyInProcess { try $0.respond(401, body: "never") }
        let response = try await proxy.request()
        #expect(response.status == 401)
        #expect(response.text == "never")
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"], ["Bearer T2"]])
        #expect(proxy.endpoint.requests.count == 2)
    }

    @Test func `on_unauthorized: pass lets a 401 through, and the next request gets a new token`() async throws {
        let proxy = try await ProxyInProcess(answer: Self.refusing("Bearer")) {
            $0.upstreams[0].onUnauthorized = .pass
        }
        #expect(try await proxy.request().status == 401)
        #expect(try await proxy.request().text == "welcome ")
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"], ["Bearer T2"]])
    }

    @Test(arguments: [(10, true), (11, false), (500_000, false)])
    func `a body past max_replay_bytes is not kept: the 401 passes, and the next request gets a new token`(
        count: Int, replayed: Bool
    ) async throws {
        let proxy = try await ProxyInProcess(answer: Self.refusing("Bearer")) { $0.upstreams[0].maxReplayBytes = 10 }
        let response = try await proxy.request("POST", body: String(repeating: "b", count: count))
        #expect(response.status == (replayed ? 200 : 401))
        #expect(proxy.origin.requests.count == (replayed ? 2 : 1))
        #expect(try await proxy.request().text == "welcome ")
    }

    @Test(arguments: [("1", 500, true), ("1", 5000, false), ("0000000000000001", 1000, false)])
    func `the framing of a kept body is limited, too`(size: String, chunks: Int, replayed: Bool) async throws {
        let proxy = try await ProxyInProcess(upstream: "max_replay_bytes: 5000", answer: Self.refusing("Bearer"))
        #expect(
            try await proxy.send(
                "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + String(repeating: "\(size)\r\nx\r\n", count: chunks) + "0\r\n\r\n"
            ).status == (replayed ? 200 : 401))
    }

    @Test func `a 401 in the middle of an upload gets a new token, and its beginning is sent again`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            guard exchange.head.field("Authorization") == "Bearer T1" else {
                return try exchange.respond(body: try exchange.readBody().text)
            }
            try exchange.send("HTTP/1.1 401 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            exchange.close()
        }
        let client = try await proxy.connect(
            sending: "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 10\r\n\r\nfirst")
        let origin = proxy.origin
        try await eventually("the second try") { origin.requests.count == 2 && origin.requests[1].text == "first" }
        try await client.send("then.")
        #expect(try await client.response().text == "firstthen.")
    }

    @Test(
        arguments: [
            "Connection: close\r\n", "", "Content-Length: 10\r\n", "Content-Length: 0\r\nConnection: close\r\n",
            "Transfer-Encoding: chunked\r\nConnection: close\r\n",
        ], [true, false])
    func `a 401 early in an upload larger than max_replay_bytes gets a new token, and the upload begins again`(
        fields: String, chunked: Bool
    ) async throws {
        let proxy = try await ProxyInProcess(upstream: "max_replay_bytes: 100KiB") { exchange in
            guard exchange.head.field("Authorization") == "Bearer T1" else {
                return try exchange.respond(body: "welcome \(try exchange.readBody().bodyCount)")
            }
            try exchange.send("HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer error=\"invalid_token\"\r\n\(fields)\r\n")
            _ = exchange.waitForPeerToLeave()
        }
        let client = try await proxy.connect()
        let size = 200_000
        let framing = chunked ? "Transfer-Encoding: chunked" : "Content-Length: \(size)"
        try await client.send("POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\(framing)\r\n\r\n")
        let piece = [UInt8](repeating: 98, count: 10_000)
        for _ in 0..<(size / piece.count) {
            try await client.send(chunked ? Array("2710\r\n".utf8) + piece + [13, 10] : piece)
            try await client.isRead()
        }
        if chunked { try await client.send("0\r\n\r\n") }
        #expect(try await client.response().text == "welcome \(size)")
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"], ["Bearer T2"]])
    }

    @Test func `a 401 to a program's own credential passes, and the token stays`() async throws {
        let proxy = try await ProxyInProcess(upstream: "on_existing: keep", answer: { try $0.respond(401) })
        #expect(try await proxy.request(fields: ["Authorization: Basic bWluZQ=="]).status == 401)
        #expect(proxy.origin.requests.count == 1)
        #expect(proxy.endpoint.requests.isEmpty)
    }

    @Test func `many requests with one refused token cause one token request`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess { exchange in
            guard exchange.head.field("Authorization") == "Bearer T1" else { return try exchange.respond(body: "ok") }
            gate.wait()
            try exchange.respond(401)
        }
        let statuses = try await proxy.statuses(of: 30) {
            try await eventually("thirty requests with T1") { proxy.origin.requests.count == 30 }
            gate.open()
        }
        #expect(Set(statuses) == [200])
        #expect(proxy.endpoint.requests.count == 2)
        #expect(proxy.origin.requests.count == 60)
    }

    @Test(arguments: [TokenEndpointAnswer.status(500), .error("invalid_client"), .silence, .token("no token")])
    func `without a new token the 401 passes as it came, and the old token stays`(
        answer: TokenEndpointAnswer
    ) async throws {
        let proxy = try await ProxyInProcess(
            endpoint: try TokenEndpoint([.token("T1"), answer]), answer: Self.refusing("Bearer realm=\"a\"")
        ) { $0.upstreams[0].tokenWait = .milliseconds(1500) }
        for body in [nil, "the body"] {
            let response = try await proxy.request("POST", body: body)
            #expect(response.status == 401)
            #expect(response.text == "no \(body ?? "")")
            #expect(response.field("WWW-Authenticate") == "Bearer realm=\"a\"")
            #expect(proxy.client.currentToken()?.value == Secret("T1"))
        }
    }

    @Test func `a chunked 401 passes whole, trailers too, and the connection goes on`() async throws {
        let proxy = try await ProxyInProcess(endpoint: try TokenEndpoint([.token("T1"), .status(500)])) { exchange in
            try exchange.send(
                "HTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-End: 1\r\n\r\n")
        }
        let client = try await proxy.connect()
        for _ in 0..<2 {
            try await client.send(message())
            let response = try await client.response()
            #expect(response.status == 401)
            #expect(response.text == "abcde")
        }
    }
}
