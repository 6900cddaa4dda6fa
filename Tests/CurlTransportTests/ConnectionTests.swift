import CurlTransport
import TestSupport
import Testing

@Suite("over HTTP/1.1 libcurl's engine has a connection for each exchange, and counts them", .timeLimit(.minutes(1)))
struct ConnectionTests {
    @Test func `each exchange has its own, which ends with it`() async throws {
        let origin = try RecordingOrigin()
        let pool = try await ConnectionPoolOnLoop()
        for number in 0..<10 {
            #expect(try await pool.send(Request(origin)).error == nil)
            try await eventually("the connection is over") { origin.connections[number].isOver }
        }
        #expect(origin.requests.map(\.connection) == Array(0..<10))
    }

    @Test func `connections of one pool are not another's`() async throws {
        let origin = try RecordingOrigin()
        for _ in 0..<3 { #expect(try await ConnectionPoolOnLoop().send(Request(origin)).error == nil) }
        #expect(origin.connections.count == 3)
    }

    @Test func `past max_connections exchanges wait their turn`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin { exchange in
            if exchange.head.target == "/held" { gate.wait() }
            try exchange.respond(body: "ok")
        }
        let pool = try await ConnectionPoolOnLoop { $0.maxConnections = 2 }
        let held = [
            try await pool.start(Request(origin, "GET", "/held")),
            try await pool.start(Request(origin, "GET", "/held")),
        ]
        var waiting: [Probe] = []
        for number in 0..<10 { waiting.append(try await pool.start(Request(origin, "GET", "/\(number)"))) }
        try await eventually("both at the origin") { origin.requests.count == 2 }
        #expect(try await pool.load() == 12)
        // One that leaves the queue is never sent.
        try await waiting[4].cancel()
        gate.open()
        for probe in held { #expect(try await probe.ended().text == "ok") }
        for (number, probe) in waiting.enumerated() where number != 4 {
            #expect(try await probe.ended().text == "ok")
        }
        #expect(Set(origin.requests.map(\.target)) == Set(["/held"] + (0..<10).filter { $0 != 4 }.map { "/\($0)" }))
        #expect(waiting[4].record.ends == 0)
        #expect(try await pool.load() == 0)
    }

    @Test func `and not for ever`() async throws {
        let origin = try RecordingOrigin { _ = $0.waitForPeerToLeave() }
        let pool = try await ConnectionPoolOnLoop {
            $0.maxConnections = 1
            $0.connectTimeout = .milliseconds(300)
        }
        let first = try await pool.start(Request(origin))
        try await eventually("the first at the origin") { origin.requests.count == 1 }
        let others = [try await pool.start(Request(origin)), try await pool.start(Request(origin))]
        for other in others { #expect(try await other.ended().error?.kind == .connectionLimit) }
        #expect(first.record.ends == 0)
        #expect(origin.requests.count == 1)
        try await first.cancel()
        let other = try RecordingOrigin()
        #expect(try await pool.send(Request(other)).text == "ok")
    }

    @Test func `a server that closes first is no trouble, and the loop rests`() async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.respond(body: "ok")
            exchange.close()
        }
        let pool = try await ConnectionPoolOnLoop()
        for number in 0..<3 {
            #expect(try await pool.send(Request(origin, "POST")).text == "ok")
            try await eventually("the connection is over") { origin.connections[number].isOver }
        }
        #expect(origin.requests.count == 3)
        #expect(try await pool.rests())
    }

    @Test func `bytes behind an answer are nobody's answer`() async throws {
        let origin = try RecordingOrigin { exchange in
            let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine\(poison)")
        }
        let pool = try await ConnectionPoolOnLoop()
        for _ in 0..<20 { #expect(try await pool.send(Request(origin)).text == "mine") }
    }
}
