import TestSupport
import Testing

@Suite(
    "request bodies stream to the upstream, whole or recognisably cut", .stopsProxies, .serialized,
    .timeLimit(.minutes(1)))
struct UploadTests {
    /// Bytes that repeat after 65,521 only, so that a lost or doubled piece shows.
    private static func pattern(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count { bytes += block.prefix(count - bytes.count) }
        return bytes
    }
    private static let block = (0..<65_521).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }

    private static func head(_ framing: String, more: String = "", method: String = "POST") -> String {
        "\(method) http://api.test/up HTTP/1.1\r\nHost: api.test\r\n\(framing)\r\n\(more)\r\n"
    }

    @Test(arguments: [0, 1, 5, 1000, 16_384, 65_536, 65_537, 1_000_000])
    func `an upload with Content-Length in one piece arrives whole`(count: Int) async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect()
        try await client.send(Array(Self.head("Content-Length: \(count)").utf8) + Self.pattern(count))
        #expect(try await client.response().status == 200)
        let request = try #require(try await proxy.origin.completeRequests(1).first)
        #expect(request.framing == .length(count))
        #expect(request.body == Self.pattern(count))
        // The connection is fit for another one.
        try await client.send(message())
        #expect(try await client.response().status == 200)
    }

    @Test(arguments: [1, 7, 1000, 65_536, 1_000_000])
    func `an upload in chunks arrives whole, whatever their size`(size: Int) async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect()
        let body = Self.pattern(size == 1 ? 3000 : 1_000_000)
        var bytes = Array(Self.head("Transfer-Encoding: chunked").utf8)
        var index = 0
        while index < body.count {
            let piece = body[index..<min(index + size, body.count)]
            bytes += Array(String(piece.count, radix: 16).utf8) + [13, 10] + piece + [13, 10]
            index += size
        }
        try await client.send(bytes + Array("0\r\n\r\n".utf8))
        #expect(try await client.response().status == 200)
        let request = try #require(try await proxy.origin.completeRequests(1).first)
        #expect(request.framing == .chunked)
        #expect(request.body == body)
        try await client.send(message())
        #expect(try await client.response().status == 200)
    }

    @Test(arguments: [false, true])
    func `an upload of several MiB, dribbled in uneven pieces, arrives whole`(chunked: Bool) async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect()
        let body = Self.pattern(4 << 20)
        var bytes = Array(Self.head(chunked ? "Transfer-Encoding: chunked" : "Content-Length: \(body.count)").utf8)
        if chunked {
            for start in stride(from: 0, to: body.count, by: 50_000) {
                let piece = body[start..<min(start + 50_000, body.count)]
                bytes += Array(String(piece.count, radix: 16).utf8) + [13, 10] + piece + [13, 10]
            }
            bytes += Array("0\r\n\r\n".utf8)
        } else {
            bytes += body
        }
        var random = SystemRandomNumberGenerator()
        var index = 0
        while index < bytes.count {
            let count = min(bytes.count - index, index < 3000 ? 1 : Int.random(in: 1...40_000, using: &random))
            try await client.send(Array(bytes[index..<(index + count)]))
            index += count
        }
        #expect(try await client.response().status == 200)
        let request = try #require(try await proxy.origin.completeRequests(1).first)
        #expect(request.bodyCount == body.count)
        #expect(request.body[...] == body.prefix(RecordingOrigin.recordLimit))
    }

    @Test func `an upload passes piece by piece, not when it is whole`() async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect(sending: Self.head("Transfer-Encoding: chunked") + "5\r\nfirst\r\n")
        try await eventually("the first piece") { proxy.origin.requests.first?.text == "first" }
        try await client.send("6\r\nsecond\r\n")
        try await eventually("the second piece") { proxy.origin.requests.first?.text == "firstsecond" }
        #expect(proxy.origin.requests.first?.isComplete == false)
        try await client.send("0\r\n\r\n")
        #expect(try await client.response().status == 200)
    }

    @Test(arguments: ["PUT", "PATCH", "DELETE", "GET", "PROPFIND", "OPTIONS"])
    func `a body passes with any method`(method: String) async throws {
        let proxy = try await ProxyInProcess()
        #expect(try await proxy.request(method, body: "hello").status == 200)
        let request = try #require(proxy.origin.requests.first)
        #expect(request.method == method)
        #expect(request.text == "hello")
        #expect(request.values("Expect") == [])
        #expect(request.values("Content-Type") == [])
    }

    @Test(arguments: ["Content-Length: 10", "Transfer-Encoding: chunked"])
    func `a client that leaves in the middle cuts the upload, never completes it`(framing: String) async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect(
            sending: Self.head(framing) + (framing.hasPrefix("C") ? "hello" : "5\r\nhello\r\n"))
        try await eventually("the first piece") { proxy.origin.requests.first?.text == "hello" }
        client.close()
        try await eventually("the upstream's connection ends", within: .seconds(5)) {
            proxy.origin.connections.first?.isOver == true
        }
        #expect(proxy.origin.requests.first?.isComplete == false)
    }

    private static let malformed = [
        "3\r\nabc\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "0x3\r\nabc\r\n0\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n",
        "-1\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n", "\r\n\r\n", "0\r\nBad Trailer: x\r\n\r\n", "fffffffffffffffff\r\nabc",
    ]

    @Test(arguments: malformed)
    func `malformed chunks that come with the head reach no upstream`(chunks: String) async throws {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect(
            sending: Self.head("Transfer-Encoding: chunked") + "2\r\nok\r\n" + chunks + message())
        let response = try await client.response()
        try expectProblem(response, "malformed-request", upstream: nil)
        #expect(response.text.contains("Nothing was sent upstream"))
        #expect(try await client.readToEnd().isEmpty)
        #expect(proxy.origin.connections.isEmpty)
    }

    @Test(arguments: malformed)
    func `malformed chunks that come later are refused, and what was sent stays incomplete`(chunks: String) async throws
    {
        let proxy = try await ProxyInProcess()
        let client = try await proxy.connect(sending: Self.head("Transfer-Encoding: chunked") + "2\r\nok\r\n")
        try await eventually("the first piece") { proxy.origin.requests.first?.text == "ok" }
        try await client.send(chunks)
        try expectProblem(try await client.response(), "malformed-request")
        #expect(try await client.readToEnd().isEmpty)
        try await eventually("the upstream's connection ends") { proxy.origin.connections.allSatisfy(\.isOver) }
        #expect(!proxy.origin.requests.contains { $0.isComplete })
    }

    // MARK: Early answers

    @Test(arguments: ["Content-Length: 8388608", "Transfer-Encoding: chunked"])
    func `a 413 in mid-upload reaches the program, whose connection then ends`(framing: String) async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send("HTTP/1.1 413 Too Much\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
            exchange.close()
        }
        let client = try await proxy.connect(sending: Self.head(framing))
        if framing.hasPrefix("T") {
            try await client.send("800000\r\n")
        }
        try await client.send(Self.pattern(65_536))
        let response = try await client.response()
        #expect(response.status == 413)
        #expect(response.text == "big")
        #expect(response.field("Connection") == "close")
        // A program that goes on sending is not cut off from the answer by a reset.
        try await client.send(Self.pattern(500_000))
        client.finishSending()
        #expect(try await client.readToEnd().isEmpty)
        #expect(!proxy.origin.requests.contains { $0.isComplete })
    }

    @Test(arguments: [false, true])
    func `a 200 in mid-upload reaches the program at once, and the upload goes on`(chunked: Bool) async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send("HTTP/1.1 200 Early\r\nContent-Length: 5\r\n\r\nearly")
            try exchange.readBody()
        }
        let client = try await proxy.connect(
            sending: Self.head(chunked ? "Transfer-Encoding: chunked" : "Content-Length: 10"))
        try await client.send(chunked ? "5\r\nfirst\r\n" : "first")
        #expect(try await client.response().text == "early")
        try await client.send(chunked ? "5\r\nthen.\r\n0\r\n\r\n" : "then.")
        #expect(try await proxy.origin.completeRequests(1).first?.text == "firstthen.")
        try await client.send(message())
        #expect(try await client.response().text == "early")
    }

    @Test func `after an early 200 a stalled upload is cut, not answered a second time`() async throws {
        let proxy = try await ProxyInProcess(upstream: "response_timeout: 300ms\nidle_timeout: 300ms") { exchange in
            try exchange.send("HTTP/1.1 200 Early\r\nContent-Length: 5\r\n\r\nearly")
            try exchange.readBody()
        }
        let client = try await proxy.connect(sending: Self.head("Content-Length: 10") + "first")
        #expect(try await client.response().text == "early")
        try await client.send("then")
        #expect(try await client.readToEnd().isEmpty)
    }

    // MARK: Expect

    @Test func `Expect: 100-continue is the upstream's to answer`() async throws {
        let gate = Gate()
        let proxy = try await ProxyInProcess { exchange in
            gate.wait()
            try exchange.send("HTTP/1.1 100 Go On\r\n\r\n")
            try exchange.respond(body: try exchange.readBody().text)
        }
        let client = try await proxy.connect(sending: Self.head("Content-Length: 5", more: "Expect: 100-continue\r\n"))
        let origin = proxy.origin
        try await eventually("the head at the origin") { origin.requests.first?.field("Expect") == "100-continue" }
        gate.open()
        #expect(try await client.response().status == 100)
        try await client.send("hello")
        #expect(try await client.response().text == "hello")
    }

    @Test(arguments: [false, true])
    func `a body under way arrives whole behind an early 200, although 100 was asked for`(chunked: Bool) async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send("HTTP/1.1 200 Early\r\nContent-Length: 5\r\n\r\nearly")
            try exchange.readBody()
        }
        let client = try await proxy.connect()
        let head = Self.head(
            chunked ? "Transfer-Encoding: chunked" : "Content-Length: 10", more: "Expect: 100-continue\r\n")
        try await client.send(head + (chunked ? "5\r\nfirst\r\n" : "first"))
        #expect(try await client.response().text == "early")
        try await client.send(chunked ? "5\r\nthen.\r\n0\r\n\r\n" : "then.")
        #expect(try await proxy.origin.completeRequests(1).first?.text == "firstthen.")
        try await client.send(message())
        #expect(try await client.response().text == "early")
    }

    @Test func `a program that does not wait for 100 is served too`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send("HTTP/1.1 100 Continue\r\n\r\n")
            try exchange.respond(body: try exchange.readBody().text)
        }
        let client = try await proxy.connect(
            sending: Self.head("Content-Length: 5", more: "Expect: 100-continue\r\n") + "hello" + message())
        #expect(try await client.response().status == 100)
        #expect(try await client.response().text == "hello")
        #expect(try await client.response().status == 100)
        #expect(try await client.response().text == "")
    }

    @Test(arguments: [417, 401, 403, 500])
    func `a refusal instead of 100 reaches the program, once, and no body is sent`(status: Int) async throws {
        let proxy = try await ProxyInProcess(upstream: "") { exchange in
            try exchange.send("HTTP/1.1 \(status) No\r\nContent-Length: 2\r\nWWW-Authenticate: Basic\r\n\r\nno")
            _ = exchange.waitForPeerToLeave()
        }
        let response = try await proxy.send(Self.head("Content-Length: 5", more: "Expect: 100-continue\r\n"))
        #expect(response.status == status)
        if status == 417 { try expectProblem(response, "expectation-failed") }
        #expect(response.field("Connection") == "close")
        try await eventually("the connection ends") { proxy.origin.connections.allSatisfy(\.isOver) }
        #expect(proxy.origin.requests.count == 1)
        #expect(proxy.origin.requests.first?.bodyCount == 0)
    }

    @Test func `a 200 instead of 100 reaches the program, and that connection is not used again`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            if exchange.head.method == "POST" {
                try exchange.send("HTTP/1.1 200 Enough\r\nContent-Length: 2\r\n\r\nok")
                _ = exchange.waitForPeerToLeave()
            } else {
                try exchange.respond(body: "next")
            }
        }
        #expect(try await proxy.send(Self.head("Content-Length: 5", more: "Expect: 100-continue\r\n")).text == "ok")
        #expect(try await proxy.request().text == "next")
        #expect(proxy.origin.requests.map(\.connection) == [0, 1])
    }

    @Test func `the wait for 100 is the upstream's time, and the wait after it the program's`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: "response_timeout: 300ms", proxy: "idle_timeout: 600ms"
        ) { exchange in
            if exchange.head.target == "/told" { try exchange.send("HTTP/1.1 100 Continue\r\n\r\n") }
            _ = exchange.waitForPeerToLeave()
        }
        for (target, status) in [("/silent", 504), ("/told", 408)] {
            let client = try await proxy.connect(
                sending: "POST http://api.test\(target) HTTP/1.1\r\nHost: api.test\r\nContent-Length: 5\r\n"
                    + "Expect: 100-continue\r\n\r\n")
            var response = try await client.response()
            if response.status == 100 { response = try await client.response() }
            #expect(response.status == status, "\(target)")
        }
    }

    @Test func `a request with another expectation than 100-continue is a 417`() async throws {
        let proxy = try await ProxyInProcess()
        let response = try await proxy.request("POST", fields: ["Expect: 200-ok"], body: "x")
        try expectProblem(response, "malformed-request", status: 417, upstream: nil)
        #expect(proxy.origin.requests.isEmpty)
    }
}
