import HTTP2
import HTTPMessage
import HTTPServer
import Reactor
import TestSupport
import Testing
import WireText

/// A client of HTTP/2 on a stream in memory, against a server that sends each request's body back.
@Suite("A connection of HTTP/2 serves many requests at a time", .timeLimit(.minutes(1)))
struct HTTP2StreamTests {
    @Test func `requests on one connection are answered, bodies and trailers both ways`() async throws {
        let client = try await HTTP2Client()
        let first = try await client.send(.post("/a"), body: "hello", trailers: [("x-sum", "5")])
        let second = try await client.send(.get("/b"))
        let answers = try await client.answers()
        #expect(answers[first]?.fields[":status"] == "200")
        #expect(answers[first]?.body == "POST /a h.test HTTP/2 hello x-sum=5")
        #expect(answers[first]?.fields["trailer-of"] == "a")
        #expect(answers[second]?.body == "GET /b h.test HTTP/2 ")
        #expect(answers[second]?.isWhole == true)
    }

    @Test func `an answer without a body has its end with its head`() async throws {
        let client = try await HTTP2Client()
        let stream = try await client.send(.get("/empty"))
        #expect(try await client.answers()[stream]?.events == ["head last", "ended", "closed 0"])
    }

    @Test func `a body larger than all windows passes, both ways`() async throws {
        let client = try await HTTP2Client()
        let text = String(repeating: "0123456789", count: 100_000)
        let stream = try await client.send(.post("/a"), body: text)
        #expect(try await client.answers()[stream]?.body == "POST /a h.test HTTP/2 " + text)
    }

    static let refused: [(fields: [(String, String)], status: String)] = [
        ([(":method", "CONNECT"), (":authority", "h.test:80")], "501"),
        ([(":method", "GET"), (":scheme", "http"), (":path", "/#x"), (":authority", "h.test")], "400"),
        ([(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "u@h.test")], "400"),
        (
            [
                (":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "h.test"),
                ("host", "other.test"),
            ], "400"
        ),
        ([(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "h.test"), ("expect", "x")], "417"),
        (
            [
                (":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "h.test"),
                ("x", String(repeating: "a", count: 65_000)), ("y", String(repeating: "a", count: 600)),
            ], "431"
        ),
    ]

    @Test(arguments: refused)
    func `a request that HTTP/1.1 would refuse is refused, and its connection goes on`(
        fields: [(String, String)], status: String
    ) async throws {
        let client = try await HTTP2Client()
        let bad = try await client.send(HTTP2Client.Request(fields))
        let good = try await client.send(.get("/b"))
        let answers = try await client.answers()
        #expect(answers[bad]?.fields[":status"] == status)
        #expect(answers[good]?.fields[":status"] == "200")
    }

    @Test func `cookies come as one field, and a Host field that fits is no second one`() async throws {
        let client = try await HTTP2Client()
        let stream = try await client.send(
            HTTP2Client.Request([
                (":method", "GET"), (":scheme", "http"), (":path", "/fields"), (":authority", "h.test"),
                ("cookie", "a=1"), ("host", "h.test"), ("cookie", "b=2"), ("te", "trailers"),
            ]))
        #expect(try await client.answers()[stream]?.body == "Host: h.test\nte: trailers\ncookie: a=1; b=2\n")
    }

    @Test func `the connection ends behind its last stream when the server drains`() async throws {
        let client = try await HTTP2Client()
        let held = try await client.send(.get("/held"))
        _ = try await client.answers()
        try await client.drain()
        #expect(try await client.answers()[held]?.isWhole == false)
        try await client.release()
        #expect(try await client.answers()[held]?.isWhole == true)
        #expect(try await client.isClosed)
    }

    @Test func `an answer that is the connection's last sends GOAWAY, and the connection ends behind its streams`()
        async throws
    {
        let client = try await HTTP2Client()
        let held = try await client.send(.get("/held"))
        let last = try await client.send(.get("/last"))
        #expect(try await client.answers()[last]?.isWhole == true)
        #expect(try await client.goAway == 0)
        #expect(try await !client.isClosed)
        try await client.release()
        #expect(try await client.answers()[held]?.isWhole == true)
        #expect(try await client.isClosed)
    }

    @Test func `a stream without a handler is refused with GOAWAY, and those that have begun are answered`()
        async throws
    {
        let client = try await HTTP2Client()
        let held = try await client.send(.get("/held"))
        _ = try await client.answers()
        try await client.refuseStreams()
        let refused = try await client.send(.get("/b"))
        #expect(try await client.answers()[refused]?.events == ["closed 7"])
        #expect(try await client.goAway == 0)
        try await client.release()
        #expect(try await client.answers()[held]?.isWhole == true)
        #expect(try await client.isClosed)
    }

    @Test func `a stream that the client resets leaves its handler, and others go on`() async throws {
        let client = try await HTTP2Client()
        let held = try await client.send(.get("/held"))
        _ = try await client.answers()
        try await client.reset(held)
        let next = try await client.send(.get("/b"))
        #expect(try await client.answers()[next]?.isWhole == true)
        #expect(try await client.left == 1)
    }

    @Test func `a client that leaves takes its requests with it`() async throws {
        let client = try await HTTP2Client()
        for _ in 0..<3 { _ = try await client.send(.get("/held")) }
        _ = try await client.answers()
        try await client.leave()
        #expect(try await client.left == 3)
        #expect(try await client.connections == 0)
    }

    @Test func `an answer before the request's end is whole, and the rest is not wanted`() async throws {
        let client = try await HTTP2Client()
        let early = try await client.send(.post("/early"), body: String(repeating: "0", count: 1_000_000))
        let next = try await client.send(.get("/b"))
        let answers = try await client.answers()
        #expect(answers[early]?.events == ["head", "ended", "closed 0"])
        #expect(answers[next]?.isWhole == true)
    }

    @Test func `a cut answer has the code of its reset`() async throws {
        let client = try await HTTP2Client()
        let cut = try await client.send(.get("/cut"))
        let next = try await client.send(.get("/b"))
        let answers = try await client.answers()
        #expect(answers[cut]?.events == ["head", "closed 11"])
        #expect(answers[cut]?.body == "GET /cut h.test HTTP/2 ")
        #expect(answers[cut]?.isWhole == false)
        #expect(answers[next]?.isWhole == true)
    }

    @Test func `a client that reads late gets all bytes of a cut answer before its reset`() async throws {
        let client = try await HTTP2Client(window: 10)
        let cut = try await client.send(.get("/cut"))
        let first = try await client.answers()[cut]
        #expect(first?.body == "GET /cut h")
        #expect(first?.events == ["head"])
        try await client.takeAll()
        let last = try await client.answers()[cut]
        #expect(last?.body == "GET /cut h.test HTTP/2 ")
        #expect(last?.events == ["head", "closed 11"])
    }

    @Test func `trailers beyond the limits reset their stream alone`() async throws {
        let client = try await HTTP2Client()
        let many = (0..<40).map { ("x-\($0)", "y") }
        let bad = try await client.send(.post("/a"), body: "hello", trailers: many)
        let next = try await client.send(.get("/b"))
        let answers = try await client.answers()
        #expect(answers[bad]?.events == ["closed 1"])
        #expect(answers[next]?.isWhole == true)
    }

    @Test func `a client that says nothing behind its preface is left after header_timeout`() async throws {
        let client = try await HTTP2Client { settings in
            settings.headerTimeout = Timeout(.milliseconds(100))
            settings.idleTimeout = .off
        }
        try await client.deliver(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8))
        try await eventually("GOAWAY") { try await client.goAway == 0 }
        try await eventually("the end") { try await client.isClosed }
    }

    @Test func `a head that never ends does not hold its connection`() async throws {
        let client = try await HTTP2Client { $0.idleTimeout = Timeout(.milliseconds(100)) }
        _ = try await client.answers()
        // HEADERS on stream 1, without END_HEADERS.
        try await client.deliver([0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82])
        try await eventually("the end") { try await client.isClosed }
    }

    @Test func `a connection without streams ends after idle_timeout, one with a stream stays`() async throws {
        let client = try await HTTP2Client { $0.idleTimeout = Timeout(.milliseconds(100)) }
        let held = try await client.send(.get("/held"))
        _ = try await client.answers()
        // The idle timeout of another connection passes.
        let other = try await HTTP2Client { $0.idleTimeout = Timeout(.milliseconds(200)) }
        _ = try await other.answers()
        try await eventually("the other's end") { try await other.isClosed }
        #expect(try await other.goAway == 0)
        #expect(try await client.goAway == nil)
        try await client.release()
        #expect(try await client.answers()[held]?.isWhole == true)
        try await eventually("the end") { try await client.isClosed }
    }

    @Test func `a finished answer that its client does not take is reset, and its connection stays`() async throws {
        let client = try await HTTP2Client(window: 10) { $0.stallTimeout = Timeout(.milliseconds(100)) }
        let stalled = try await client.send(.get("/stalled"))
        try await eventually("the reset") {
            try await client.answers()[stalled]?.events == ["head", "closed 8"]
        }
        let next = try await client.send(.get("/empty"))
        #expect(try await client.answers()[next]?.isWhole == true)
    }

    @Test func `an answer goes on when a full socket has room, without a frame of the client`() async throws {
        let client = try await HTTP2Client(window: 8 << 20)
        _ = try await client.answers()
        try await client.setRoom(false)
        let stream = try await client.send(.get("/large"))
        #expect(try await client.answers()[stream]?.body == "")
        try await client.setRoom(true)
        try await eventually("all of it") { try await client.answers()[stream]?.isWhole == true }
        #expect(try await client.answers()[stream]?.body.count == 1 << 20)
    }

    @Test func `a draining server waits for no PING that never comes`() async throws {
        let client = try await HTTP2Client()
        _ = try await client.answers()
        try await client.drain()
        // The client's session is not run, so nothing answers the PING.
        try await eventually("the end") { try await client.isClosed }
    }

    @Test func `a preface that goes wrong ends the connection with GOAWAY`() async throws {
        let client = try await HTTP2Client()
        try await client.deliver(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r".utf8))
        try await client.deliver(Array("X".utf8))
        #expect(try await client.goAway == 1)
        #expect(try await client.isClosed)
    }
}
