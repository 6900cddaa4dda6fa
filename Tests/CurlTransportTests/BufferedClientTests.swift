import CurlTransport
import Reactor
import TestSupport
import Testing

@Suite("whole exchanges for callers that may wait", .timeLimit(.minutes(1)))
struct BufferedClientTests {
    private func client() throws -> (BufferedClient, EventLoop) {
        let loop = try EventLoop.start(name: "buffered")
        return (BufferedClient(options: PoolOptions(), loop: loop), loop)
    }

    private func request(_ origin: RecordingOrigin, _ method: String = "GET") -> BufferedClient.Request {
        var request = BufferedClient.Request(origin: .plain(origin.port))
        request.method = method
        return request
    }

    @Test func `a buffered client sends a request and reads its whole answer`() async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.send("HTTP/1.1 103 Hints\r\nX: early\r\n\r\n")
            try exchange.respond(201, fields: [("X-One", "two"), ("x-one", "")], body: try exchange.readBody().text)
        }
        let (client, loop) = try client()
        defer { loop.stop() }
        var request = request(origin, "POST")
        request.target = "/x?y"
        request.fields = [("X-Mine", "1"), ("X-Empty", "")]
        request.body = Array("hello".utf8)
        let response = try await client.send(request)
        #expect(response.status == 201)
        #expect(response.fields.map { "\($0.name): \($0.value)" } == ["X-One: two", "x-one: ", "Content-Length: 5"])
        #expect(String(decoding: response.body, as: UTF8.self) == "hello")
        let received = try #require(origin.requests.first)
        #expect(received.line == "POST /x?y HTTP/1.1")
        #expect(Set(received.fields.map(\.name)) == ["Host", "User-Agent", "X-Mine", "X-Empty", "Content-Length"])
    }

    @Test func `fifty exchanges run at once on one loop`() async throws {
        let origin = try RecordingOrigin { try $0.respond(body: $0.head.target) }
        let (client, loop) = try client()
        defer { loop.stop() }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<50 {
                var request = request(origin)
                request.target = "/\(number)"
                let sent = request
                group.addTask { try await client.send(sent).body == Array(sent.target.utf8) }
            }
            for try await isRight in group { #expect(isRight) }
        }
    }

    @Test func `the timeout of an exchange runs from its start to its last byte`() async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
            _ = exchange.waitForPeerToLeave()
        }
        let (client, loop) = try client()
        defer { loop.stop() }
        var request = request(origin)
        request.timeout = .milliseconds(200)
        let sent = request
        let failure = await #expect(throws: BufferedClient.Failure.self) { try await client.send(sent) }
        if case .timeout = failure {} else { Issue.record("\(String(describing: failure))") }
        try await eventually("the connection ends") { origin.connections[0].isOver }
    }

    @Test func `an answer past maxBodyBytes is refused, not gathered`() async throws {
        let origin = try RecordingOrigin { try $0.flood(64 << 20) }
        let (client, loop) = try client()
        defer { loop.stop() }
        var request = request(origin)
        request.maxBodyBytes = 100_000
        let sent = request
        let failure = await #expect(throws: BufferedClient.Failure.self) { try await client.send(sent) }
        if case .bodyTooLarge = failure {} else { Issue.record("\(String(describing: failure))") }
        try await eventually("the connection ends") { origin.connections[0].isOver }
    }

    @Test func `a cancelled task ends the exchange`() async throws {
        let origin = try RecordingOrigin { _ = $0.waitForPeerToLeave() }
        let (client, loop) = try client()
        defer { loop.stop() }
        let request = request(origin)
        let task = Task { try await client.send(request) }
        try await eventually("the request arrives") { origin.requests.count == 1 }
        task.cancel()
        await #expect(throws: BufferedClient.Failure.self) { try await task.value }
        try await eventually("the connection ends") { origin.connections[0].isOver }
    }

    @Test func `nothing fires when a finished exchange would have timed out`() async throws {
        let origin = try RecordingOrigin { exchange in
            guard exchange.head.target == "/silence" else { return try exchange.respond() }
            _ = exchange.waitForPeerToLeave()
        }
        let (client, loop) = try client()
        defer { loop.stop() }
        var request = request(origin)
        request.timeout = .seconds(2)
        for _ in 0..<20 { #expect(try await client.send(request).status == 200) }
        // Begun last, so its timeout passes after those of the others.
        var last = request
        last.target = "/silence"
        let silent = last
        await #expect(throws: BufferedClient.Failure.self) { try await client.send(silent) }
        #expect(try await client.send(request).status == 200)
    }

    @Test(arguments: [
        ("GET ", "/", "X", "y"), ("", "/", "X", "y"), ("GET", "/ x", "X", "y"), ("GET", "/\r\nX: y", "X", "y"),
        ("GET", "/", "X\r\n", "y"), ("GET", "/", "", "y"), ("GET", "/", "X", "y\r\nZ: z"), ("GET", "/", "X", "y\0"),
    ])
    func `a request that could break out of its head is refused`(
        method: String, target: String, name: String, value: String
    )
        async throws
    {
        let origin = try RecordingOrigin()
        let (client, loop) = try client()
        defer { loop.stop() }
        var request = request(origin, method)
        request.target = target
        request.fields = [(name, value)]
        let sent = request
        let failure = await #expect(throws: BufferedClient.Failure.self) { try await client.send(sent) }
        if case .invalidRequest = failure {} else { Issue.record("\(String(describing: failure))") }
        #expect(origin.connections.isEmpty)
    }

    @Test(arguments: ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal", ""])
    func `a cut answer is a failure of its exchange`(answer: String) async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.send(answer)
            exchange.close()
        }
        let (client, loop) = try client()
        defer { loop.stop() }
        let request = request(origin)
        await #expect(throws: BufferedClient.Failure.self) { try await client.send(request) }
    }

    @Test(arguments: [
        (
            "GET", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX-End: 1\r\n\r\n",
            "abcde"
        ),
        ("GET", "200 OK\r\n\r\nall of it", "all of it"), ("HEAD", "200 OK\r\nContent-Length: 100\r\n\r\n", ""),
        ("GET", "204 None\r\n\r\n", ""), ("GET", "304 Same\r\nContent-Length: 9\r\n\r\n", ""),
    ])
    func `a body is read in each framing`(method: String, answer: String, body: String) async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.send("HTTP/1.1 \(answer)")
            exchange.close()
        }
        let (client, loop) = try client()
        defer { loop.stop() }
        let response = try await client.send(request(origin, method))
        #expect(String(decoding: response.body, as: UTF8.self) == body)
        #expect(!response.fields.contains { $0.name == "X-End" })
    }

    @Test func `heads past 64 KiB are refused, interim ones and trailers counted`() async throws {
        let field = "X-More: \(String(repeating: "x", count: 1000))\r\n"
        let starts = [
            "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            "HTTP/1.1 103 Hints\r\n",
        ]
        for start in starts {
            let origin = try RecordingOrigin { exchange in
                try exchange.send(start)
                while true { try exchange.send(field) }
            }
            let (client, loop) = try client()
            defer { loop.stop() }
            let request = request(origin)
            let failure = await #expect(throws: BufferedClient.Failure.self) { try await client.send(request) }
            guard case .transport(let error) = failure else {
                Issue.record("\(String(describing: failure))")
                continue
            }
            #expect(error.kind == .responseMalformed)
        }
    }

    @Test func `calls past maxConnections wait for their turn`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin { exchange in
            gate.wait()
            try exchange.respond()
        }
        let loop = try EventLoop.start(name: "buffered")
        defer { loop.stop() }
        var options = PoolOptions()
        options.maxConnections = 2
        let client = BufferedClient(options: options, loop: loop)
        let request = request(origin)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<6 { group.addTask { try await client.send(request).status } }
            try await eventually("two calls at the origin") { origin.requests.count == 2 }
            gate.open()
            for try await status in group { #expect(status == 200) }
        }
        #expect(origin.requests.count == 6)
    }

    @Test func `clients come and go while their loop runs`() async throws {
        let origin = try RecordingOrigin()
        let loop = try EventLoop.start(name: "buffered")
        defer { loop.stop() }
        for _ in 0..<50 {
            let client = BufferedClient(options: PoolOptions(), loop: loop)
            #expect(try await client.send(request(origin)).status == 200)
        }
        try await eventually("their connections end") { origin.connections.filter { !$0.isOver }.count <= 1 }
    }
}
