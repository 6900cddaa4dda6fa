import TestSupport
import Testing

@Suite("within an answer nothing comes but its own bytes", .stopsProxies, .timeLimit(.minutes(1)))
struct AnswerUnderWayTests {
    /// What follows a request's body that began well, and must end the answer that is under way.
    private static let ends: [(settings: String, framing: String, rest: String)] = [
        ("", "Transfer-Encoding: chunked", "zz\r\n"), ("", "Transfer-Encoding: chunked", "5\r\nhelloX"),
        ("", "Transfer-Encoding: chunked", "0\r\nbad trailer\r\n\r\n"),
        ("max_body_bytes: 10", "Transfer-Encoding: chunked", "64\r\n" + String(repeating: "x", count: 100) + "\r\n"),
        ("idle_timeout: 300ms", "Content-Length: 100", ""),
    ]
    private static let framings = ["Content-Length: 1000", "Transfer-Encoding: chunked", "Connection: close"]

    @Test(arguments: ends.indices, framings)
    func `a body that turns out bad cuts the answer under way`(index: Int, framing: String) async throws {
        let end = Self.ends[index]
        let proxy = try await ProxyInProcess(upstream: "idle_timeout: 300ms", proxy: end.settings) { exchange in
            let chunked = framing.hasPrefix("T")
            try exchange.send("HTTP/1.1 200 Early\r\n\(framing)\r\n\r\n" + (chunked ? "5\r\nearly\r\n" : "early"))
            _ = exchange.waitForPeerToLeave()
        }
        let client = try await proxy.connect()
        let first = end.framing.hasPrefix("T") ? "5\r\nfirst\r\n" : "first"
        try await client.send(
            "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\(end.framing)\r\n\r\n\(first)")
        #expect(try await client.read(until: "early").hasPrefix("HTTP/1.1 200 Early\r\n"))
        if !end.rest.isEmpty { try await client.send(end.rest) }
        let rest = String(decoding: try await client.readToEnd(within: .seconds(5)), as: UTF8.self)
        #expect(rest == "" || rest == "\r\n")
        try await eventually("the upstream's connection ends") { proxy.origin.connections.allSatisfy(\.isOver) }
        #expect(!proxy.origin.requests.contains { $0.isComplete })
    }

    @Test func `an interim answer is whole in itself: a problem may follow it`() async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send("HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 2x0 Bad\r\n\r\n")
            _ = exchange.waitForPeerToLeave()
        }
        let client = try await proxy.connect(sending: message())
        #expect(try await client.response().status == 103)
        #expect(try await client.response().status == 502)
    }

    @Test(arguments: ["HEAD", "GET"])
    func `an upstream that sends more than it announced adds nothing to the answer`(method: String) async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send("HTTP/1.1 200 Short\r\nContent-Length: 5\r\n\r\nshortHTTP/1.1 200 Second\r\n\r\n")
            exchange.close()
        }
        let client = try await proxy.connect(
            sending: "\(method) http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 3\r\n\r\nabc")
        #expect(try await client.response(to: method).text == (method == "HEAD" ? "" : "short"))
        try await client.send(message("GET", "http://nobody.test/"))
        #expect(try await client.response().status == 403)
    }
}
