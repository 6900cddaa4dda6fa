import TestSupport
import Testing

@Suite("what the tests are made with")
struct TestSupportTests {
    @Test func `a child says what it wrote and how it ended`() async throws {
        let child = try await ChildProcess.run(
            ["sh", "-c", "cat; echo problem >&2; pwd; exit 3"], directory: "/", input: Array("given\n".utf8))
        #expect(child.ending == .exited(3))
        #expect(child.output == "given\n/\n")
        #expect(child.errors == "problem\n")
    }

    @Test func `a child ends with the last reference to it`() async throws {
        var child: ChildProcess? = try ChildProcess(["sleep", "600"])
        let pid = try #require(child?.pid)
        try await eventually("it runs") { (try? ChildProcess.commandLine(of: pid))?.hasPrefix("sleep") == true }
        child = nil
        try await eventually("it is gone") { (try? ChildProcess.commandLine(of: pid)) == nil }
    }

    @Test func `an origin records what it received and answers as it is told`() async throws {
        let origin = try RecordingOrigin { exchange in
            if exchange.head.target == "/pieces" {
                try exchange.readBody()
                try exchange.startChunked()
                try exchange.chunk("one")
                try exchange.chunk("two")
                try exchange.lastChunk(trailers: [("X-Sum", "2")])
            } else {
                try exchange.respond(body: "whole")
            }
        }
        let client = try await RawClient.connect(port: origin.port)
        try await client.send(
            "POST /pieces HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n")
        let first = try await client.response()
        #expect(first.text == "onetwo")
        #expect(first.trailers == [Field(name: "X-Sum", value: "2")])
        try await client.send("PUT /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nxyz")
        #expect(try await client.response().text == "whole")
        let received = try await origin.completeRequests(2)
        #expect(received.map(\.line) == ["POST /pieces HTTP/1.1", "PUT /b HTTP/1.1"])
        #expect(received.map(\.text) == ["body", "xyz"])
        #expect(received.map(\.connection) == [0, 0])
        #expect(origin.problems.isEmpty)
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n\r\n", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a\r\nx\r\n0\r\n\r\n",
    ])
    func `an origin finds fault with requests that two readers could read differently`(request: String) async throws {
        let origin = try RecordingOrigin()
        let client = try await RawClient.connect(port: origin.port)
        try await client.send(request)
        try await eventually("a problem") { !origin.problems.isEmpty }
    }

    @Test func `nginx answers over http, and over TLS with HTTP 1 and 2`() async throws {
        let nginx = try await Nginx.secure()
        #expect(try await curl("http://127.0.0.1:\(nginx.httpPort)/a").contains("protocol: HTTP/1.1"))
        for (option, version) in [("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2.0")] {
            let answer = try await curl(
                "https://localhost:\(nginx.httpsPort)/b", "--cacert", nginx.authority.certificateFile, option)
            #expect(answer.contains("request: GET /b \(version)\nprotocol: \(version)"))
        }
        let distrusting = try await ChildProcess.run(["curl", "--silent", "https://localhost:\(nginx.httpsPort)/"])
        #expect(distrusting.ending == .exited(60))
        try await nginx.stop()
    }

    @Test func `django-oauth-toolkit hands out tokens and its API wants them`() async throws {
        let server = try await DjangoOAuthToolkit()
        let refused = try await curl("\(server.url)/api/x", "--write-out", "%{http_code}")
        #expect(refused.hasSuffix("401"))
        let refreshToken = try await server.refreshToken()
        #expect(refreshToken.count > 10)
        let tokens = try await server.tokens()
        #expect(tokens.access == 1 && tokens.refresh == 1 && tokens.refreshRevoked == 0)
        #expect(server.tokenRequests == 1)
    }

    @Test func `a deaf port neither accepts nor refuses`() async throws {
        let deaf = try DeafPort()
        let attempt = try await ChildProcess.run([
            "curl", "--silent", "--noproxy", "*", "--connect-timeout", "1", "http://127.0.0.1:\(deaf.port)/",
        ])
        // 28: timed out. A refusal were 7.
        #expect(attempt.ending == .exited(28))
    }

    @Test func `an origin counts what it does not keep`() async throws {
        let origin = try RecordingOrigin { try $0.respond(body: "\(try $0.readBody().bodyCount)") }
        let client = try await RawClient.connect(port: origin.port)
        let count = 64 << 20
        try await client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n")
        try await client.send([UInt8](repeating: 0, count: 1 << 20), times: 64, within: .seconds(60))
        #expect(try await client.response(to: "POST").text == "\(count)")
        #expect(origin.requests.first?.body.count == RecordingOrigin.recordLimit)
    }

    @Test(arguments: UnmodifiedProgramsTests.programs + [UnmodifiedProgramsTests.node])
    func `each program of these tests sends the requests that it is meant to`(program: UnmodifiedProgramsTests.Program)
        async throws
    {
        let origin = try RecordingOrigin()
        for command in try program.command("\(origin.url)/x") {
            try await ChildProcess.output(of: command, environment: ["http_proxy": nil, "HTTP_PROXY": nil])
        }
        let requests = try await origin.completeRequests(2)
        #expect(requests.map(\.line) == ["GET /x HTTP/1.1", "POST /x HTTP/1.1"])
        #expect(requests[1].text == "hello=world")
        #expect(origin.problems.isEmpty)
    }

    private func curl(_ arguments: String...) async throws -> String {
        try await ChildProcess.output(of: ["curl", "--silent", "--show-error", "--noproxy", "*"] + arguments)
    }
}
