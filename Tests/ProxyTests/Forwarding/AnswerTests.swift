import TestSupport
import Testing

@Suite(
    "an answer passes as it is, and one that is cut or ambiguous never looks complete", .stopsProxies, .serialized,
    .timeLimit(.minutes(1)))
struct AnswerTests {
    private static let cut = [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n0\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n0\r\nX-End: 1\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ]

    @Test(arguments: cut, [false, true])
    func `a cut answer never looks whole`(answer: String, reset: Bool) async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send(answer)
            reset ? exchange.reset() : exchange.close()
        }
        for version in ["HTTP/1.1", "HTTP/1.0"] {
            let client = try await proxy.connect(sending: "GET / \(version)\r\nHost: api.test\r\n\r\n")
            await #expect(throws: (any Error).self, "\(version)") { try await client.response() }
        }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 2",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
    ])
    func `an answer that ends within its head is a problem`(answer: String) async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send(answer)
            exchange.close()
        }
        let client = try await proxy.connect(sending: message())
        var response = try await client.response()
        if response.status == 100 { response = try await client.response() }
        #expect(response.status == 502)
        #expect(response.field("Proxy-Status")?.hasPrefix("heimdallr-proxy; error=") == true)
        // The client's own connection is not to blame.
        try await client.send(message())
        #expect([502, 100].contains(try await client.response().status))
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\n: empty\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nX y: z\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1  200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 999 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/2 200 OK\r\nContent-Length: 5\r\n\r\nhello", "http/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "hello", "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 5\r\n\r\nhello", "\r\n\r\n", "ICY 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
    ])
    func `an ambiguous answer is a problem, and its connection is not used again`(answer: String) async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send(answer)
            if exchange.waitForPeerToLeave() { exchange.close() }
        }
        let first = try await proxy.request("POST", body: "x")
        #expect(first.status == 502)
        #expect(first.field("Proxy-Status")?.hasPrefix("heimdallr-proxy; error=") == true)
        #expect(!first.text.contains("hello"))
        #expect(try await proxy.request("POST", body: "x").status == 502)
        #expect(Set(proxy.origin.requests.map(\.connection)) == [0, 1])
    }

    /// curl/curl#11101: libcurl before 8.1.1 wrote into freed memory.
    @Test func `a field line that continues nothing is a problem, also after good answers`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            guard exchange.head.target == "/fold" else { return try exchange.respond(fields: [("A", "b")]) }
            try exchange.send("HTTP/1.1 200 OK\r\n folded: \(String(repeating: "x", count: 4000))\r\n\r\n")
            exchange.close()
        }
        for _ in 0..<50 {
            #expect(try await proxy.request().status == 200)
            #expect(try await proxy.request("GET", "http://api.test/fold").status == 502)
        }
    }

    @Test func `bytes behind an answer are never the next answer`() async throws {
        let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send(
                "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine\(exchange.head.target == "/poison" ? poison : "")")
        }
        for _ in 0..<20 {
            #expect(try await proxy.request("GET", "http://api.test/poison").text == "mine")
            #expect(try await proxy.request("GET", "http://api.test/").text == "mine")
        }
    }

    @Test func `a connection that speaks while nothing is asked is not used again`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess { exchange in
            try exchange.respond(body: "mine")
            guard exchange.head.target == "/poison" else { return }
            gate.wait()
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
        }
        #expect(try await proxy.request("GET", "http://api.test/poison").text == "mine")
        gate.open()
        try await eventually("the proxy ends the connection") { proxy.origin.connections[0].isOver }
        #expect(try await proxy.request("POST", "http://api.test/", body: "x").text == "mine")
        #expect(proxy.origin.requests.map(\.connection) == [0, 1])
    }

    /// epoll reports the program's request and the unasked bytes together. Nothing was sent on that connection, so that a
    /// POST goes out on another one as well.
    @Test(arguments: ["GET", "POST"])
    func `what came before a request went out is not its answer`(method: String) async throws {
        for isEnd in [false, true] {
            let gate = Gate()
            let poisoned = Signal()
            let proxy = try await ProxyInProcess { exchange in
                try exchange.respond(body: "mine")
                guard exchange.head.target == "/poison" else { return }
                gate.wait()
                defer { poisoned.give() }
                if isEnd { return exchange.close() }
                try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
            }
            let client = try await proxy.connect(sending: message("GET", "http://api.test/poison"))
            #expect(try await client.response().text == "mine")
            let held = Gate()
            await proxy.holdLoop(until: held)
            try await client.send(message(method, "http://api.test/"))
            try await client.isDelivered()
            gate.open()
            await poisoned.wait()
            held.open()
            let response = try await client.response()
            #expect(response.status == 200)
            #expect(response.text == "mine")
        }
    }

    @Test(arguments: ["HEAD", "GET"])
    func `bytes behind an answer without a body are never the next answer`(method: String) async throws {
        let proxy = try await ProxyInProcess { exchange in
            if exchange.head.target == "/poison" {
                let status = exchange.head.method == "HEAD" ? 200 : 304
                try exchange.send(
                    "HTTP/1.1 \(status) OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
            } else {
                try exchange.respond(body: "mine")
            }
        }
        for _ in 0..<20 {
            #expect(try await proxy.request(method, "http://api.test/poison").text == "")
            #expect(try await proxy.request("GET", "http://api.test/").text == "mine")
        }
    }

    /// RFC 9112, 7.1; CVE-2025-22871 is about the bare LF. libcurl takes most of these.
    @Test(arguments: [
        "5 x\r\nhello\r\n0\r\n\r\n", "5 \nhello\r\n0\r\n\r\n", "5\nhello\r\n0\r\n\r\n", "5\nhello\n0\n\n",
        "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\n 0\r\n\r\n", "5\r\nhello\r\n0\n\r\n", "5\r\nhello\r\n0\r\n\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n", "5 ;a\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\nX: 1\n\r\n",
        "5\r\nhello\r\n0\r\nX : 1\r\n\r\n", "5\r\nhello\r\n0\r\nX: 1\r\n folded\r\n\r\n",
        "5\r\nhello\r\n0\r\nX: a\rb\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n", "10000000000000005\r\nhello\r\n0\r\n\r\n",
        "5;\(String(repeating: "x", count: 300))\r\nhello\r\n0\r\n\r\n",
    ])
    func `chunks that could be read differently never make a whole answer`(chunks: String) async throws {
        let proxy = try await ProxyInProcess { exchange in
            guard exchange.head.target == "/bad" else { return try exchange.respond(body: "good") }
            try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)")
            _ = exchange.waitForPeerToLeave()
        }
        let client = try await proxy.connect(sending: message("GET", "http://api.test/bad"))
        await #expect(throws: (any Error).self) { try await client.response(within: .seconds(5)) }
        let old = try await proxy.connect(sending: "GET /bad HTTP/1.0\r\nHost: api.test\r\n\r\n")
        await #expect(throws: (any Error).self) { try await old.response(within: .seconds(5)) }
        #expect(try await proxy.request().text == "good")
        #expect(proxy.origin.requests.map(\.connection) == [0, 1, 2])
    }

    @Test(arguments: [
        "HEAD 200 Content-Length: 5", "HEAD 200 Transfer-Encoding: chunked", "GET 204 X: y",
        "GET 204 Content-Length: 0",
        "GET 304 Content-Length: 5", "GET 200 Content-Length: 0", "POST 200 Content-Length: 0",
        "GET 200 Content-Length: 4\r\n\r\nmine",
    ])
    func `a connection with bytes behind an answer's known end is not used again`(
        answer: String
    ) async throws {
        let parts = answer.split(separator: " ", maxSplits: 2).map(String.init)
        let proxy = try await ProxyInProcess { exchange in
            let rest = parts[2].hasSuffix("mine") ? parts[2] : parts[2] + "\r\n\r\n"
            let excess = exchange.head.target == "/good" ? "" : "HTTP/1.1 200 OK\r\n"
            try exchange.send("HTTP/1.1 \(parts[1]) OK\r\n\(rest)\(excess)")
        }
        let body = parts[0] == "POST" ? "x" : nil
        for path in ["bad", "bad", "good", "good", "good"] {
            #expect(try await proxy.request(parts[0], "http://api.test/\(path)", body: body).status == Int(parts[1]))
        }
        #expect(proxy.origin.requests.map(\.connection) == [0, 1, 2, 2, 2])
    }

    @Test func `a connection on which something follows the last chunk is not used again`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nmine\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n")
        }
        for _ in 0..<3 { #expect(try await proxy.request("POST", body: "x").text == "mine") }
        #expect(proxy.origin.requests.map(\.connection) == [0, 1, 2])
    }

    @Test(arguments: [1, 1000, 100_000]) func `chunks of any size reach a slow reader whole`(size: Int) async throws {
        let piece = String(repeating: "abcdefghij", count: max(1, size / 10))
        let count = min(3000, 4_000_000 / piece.utf8.count)
        let proxy = try await ProxyInProcess { exchange in
            try exchange.startChunked()
            let chunk = "\(String(piece.utf8.count, radix: 16))\r\n\(piece)\r\n"
            try exchange.send(String(repeating: chunk, count: count))
            try exchange.lastChunk(trailers: [("X-End", "1")])
        }
        let client = try await proxy.connect(receiveBuffer: 8192, sending: message())
        let response = try await client.response(within: .seconds(40))
        #expect(response.text == String(repeating: piece, count: count))
        #expect(response.trailers.map(\.description) == ["X-End: 1"])
    }

    @Test func `an answer that ends with its connection is framed for the client`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nX-One: two\r\n\r\nto the end")
            exchange.close()
        }
        let client = try await proxy.connect(sending: message() + message())
        for _ in 0..<2 {
            let response = try await client.response()
            #expect(response.text == "to the end")
            #expect(!response.endedByClose)
        }
        let old = try await proxy.send("GET / HTTP/1.0\r\nHost: api.test\r\n\r\n")
        #expect(old.text == "to the end")
        #expect(old.endedByClose)
    }

    @Test func `an answer arrives piece by piece, not when it is whole`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess { exchange in
            try exchange.startChunked(fields: [("Content-Type", "text/event-stream")])
            try exchange.chunk("data: 1\n\n")
            gate.wait()
            try exchange.chunk("data: 2\n\n")
            try exchange.lastChunk()
        }
        let client = try await proxy.connect(sending: message())
        #expect(try await client.read(until: "data: 1\n\n").hasPrefix("HTTP/1.1 200 Answer\r\n"))
        gate.open()
        _ = try await client.read(until: "data: 2\n\n")
        #expect(try await client.read(until: "0\r\n\r\n") == "\r\n0\r\n\r\n")
    }

    @Test func `a large answer to a slow reader is whole`() async throws {
        let proxy = try await ProxyInProcess { try $0.flood(8 << 20) }
        let client = try await proxy.connect(receiveBuffer: 8192, sending: message())
        #expect(try await client.read(until: "\r\n\r\n").contains("Content-Length: \(8 << 20)\r\n"))
        for _ in 0..<128 {
            #expect(try await client.read(count: 65_536).allSatisfy { $0 == 0x78 })
        }
        try await client.send(message("HEAD", "http://nobody.test/"))
        #expect(try await client.response(to: "HEAD").status == 403)
    }

    // MARK: Interim answers and trailers

    @Test func `interim answers pass to 1.1, not to 1.0`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nConnection: x\r\nX: y\r\n\r\n")
            try exchange.send("HTTP/1.1 102 Processing\r\n\r\n")
            try exchange.respond(body: "done")
        }
        let client = try await proxy.connect(sending: message())
        let hint = try await client.response()
        #expect(hint.status == 103)
        #expect(hint.fields.filter { $0.name != "Via" }.map(\.description) == ["Link: </a>; rel=preload"])
        #expect(try await client.response().status == 102)
        #expect(try await client.response().text == "done")
        #expect(try await proxy.send("GET / HTTP/1.0\r\nHost: api.test\r\n\r\n").text == "done")
    }

    @Test func `interim answers without end are a problem`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            while true { try exchange.send("HTTP/1.1 102 Processing\r\n\r\n") }
        }
        let client = try await proxy.connect(sending: message())
        var response = try await client.response()
        var count = 0
        while response.status == 102 {
            count += 1
            response = try await client.response()
        }
        try expectProblem(response, "malformed-response")
        #expect(count < 100)
    }

    @Test func `101 to a request that asked for no upgrade is a problem`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw bytes")
            _ = exchange.waitForPeerToLeave()
        }
        try expectProblem(try await proxy.request(), "unasked-upgrade")
    }

    @Test func `trailers pass as trailers, but for those that belong into a head`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.startChunked(fields: [("Trailer", "X-Checksum")])
            try exchange.chunk("body")
            try exchange.lastChunk(trailers: [
                ("X-Checksum", "1234"), ("Content-Length", "3"), ("Transfer-Encoding", "chunked"),
                ("Set-Cookie", "a=b"),
                ("Authorization", "x"), ("grpc-status", "0"),
            ])
        }
        let client = try await proxy.connect(sending: message() + message())
        for _ in 0..<2 {
            let response = try await client.response()
            #expect(response.text == "body")
            #expect(response.trailers.map(\.description) == ["X-Checksum: 1234", "grpc-status: 0"])
            #expect(response.field("X-Checksum") == nil)
        }
    }

    @Test func `trailers without end cut the answer`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.startChunked()
            try exchange.chunk("body")
            try exchange.send("0\r\n")
            while true { try exchange.send("X-More: \(String(repeating: "x", count: 1000))\r\n") }
        }
        let client = try await proxy.connect(sending: message())
        await #expect(throws: (any Error).self) { try await client.response() }
    }

    @Test func `chunks come out as chunks without what was said beside their size`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n1;z=\"q\"\r\n!\r\n0;last\r\n\r\n"
            )
        }
        #expect(try await proxy.request().text == "hello!")
    }
}
