import CurlTransport
import TestSupport
import Testing

@Suite("a carrier carries bytes, and serves again as long as nothing is wrong with it", .timeLimit(.minutes(1)))
struct CarrierTests {
    @Test func `bytes that are written arrive, and the answer comes back`() async throws {
        let origin = try RecordingOrigin { try $0.respond(body: "hello") }
        let carriers = try await CarrierPoolOnLoop()
        let user = try await carriers.exchange(.plain(origin.port))
        #expect(user.record.text.hasSuffix("\r\n\r\nhello"))
        #expect(!user.record.isReused && !user.record.needsAbsoluteForm)
        #expect(origin.requests.map(\.line) == ["GET / HTTP/1.1"])
        #expect(origin.requests.first?.fields.map(\.description) == ["Host: 127.0.0.1:\(origin.port)"])
    }

    @Test func `one connection serves its users one after the other`() async throws {
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop()
        for number in 0..<10 {
            #expect(try await carriers.exchange(.plain(origin.port)).record.isReused == (number > 0))
        }
        #expect(origin.connections.count == 1)
        #expect(try await carriers.counts == .init(open: 1, idle: 1))
    }

    @Test func `the connection used last serves first`() async throws {
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop()
        var users: [CarrierUser] = []
        for _ in 0..<3 { users.append(try await carriers.connected(.plain(origin.port))) }
        for (number, user) in users.enumerated() {
            try await user.send("GET /\(number) HTTP/1.1\r\nHost: x\r\n\r\n")
            _ = try await user.answer()
        }
        for number in [1, 2, 0] { try await users[number].release() }
        for _ in 0..<3 { _ = try await carriers.exchange(.plain(origin.port), target: "/again") }
        let first = origin.requests.first { $0.target == "/0" }?.connection
        #expect(origin.requests.filter { $0.target == "/again" }.map(\.connection) == [first, first, first])
    }

    @Test func `a connection to one origin serves no other one, and makes room for it`() async throws {
        let first = try RecordingOrigin()
        let second = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop { $0.maxConnections = 2 }
        for _ in 0..<2 {
            _ = try await carriers.exchange(.plain(first.port))
            _ = try await carriers.exchange(.plain(second.port))
        }
        #expect(first.connections.count == 1 && second.connections.count == 1)
        let third = try RecordingOrigin()
        _ = try await carriers.exchange(.plain(third.port))
        #expect(try await carriers.counts == .init(open: 2, idle: 2))
        // The one that was idle longest went.
        try await eventually("the oldest is closed") { first.connections[0].isOver }
        #expect(!second.connections[0].isOver)
    }

    @Test func `a user that asks for a fresh connection gets one`() async throws {
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop()
        _ = try await carriers.exchange(.plain(origin.port))
        #expect(try await carriers.exchange(.plain(origin.port), newConnection: true).record.isReused == false)
        #expect(origin.connections.count == 2)
    }

    @Test func `a connection that is closed serves nobody again`() async throws {
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop()
        let user = try await carriers.connected(.plain(origin.port))
        try await user.close()
        try await eventually("the origin sees the end") { origin.connections.first?.isOver == true }
        #expect(try await carriers.counts == .init())
        let forbidden = try await carriers.connected(.plain(origin.port))
        try await forbidden.onLoop { $0.carrier?.forbidReuse() }
        try await forbidden.release()
        #expect(try await carriers.counts == .init())
    }

    @Test func `a connection past max_connection_age is not used again, and goes by itself`() async throws {
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop { $0.maxConnectionAge = .milliseconds(400) }
        _ = try await carriers.exchange(.plain(origin.port))
        #expect(try await carriers.exchange(.plain(origin.port)).record.isReused)
        try await carriers.settles(at: .init())
        #expect(try await carriers.exchange(.plain(origin.port)).record.isReused == false)
        let busy = try await carriers.connected(.plain(origin.port))
        // Younger than the busy connection, and past its age when it is gone.
        _ = try await carriers.exchange(.plain(origin.port))
        try await carriers.settles(at: .init(open: 1))
        try await busy.release()
        #expect(try await carriers.counts == .init())
    }

    // MARK: Idle ones

    @Test func `a connection that was idle past its limit is not used again, and goes by itself`() async throws {
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop { $0.maxIdleTime = .milliseconds(100) }
        _ = try await carriers.exchange(.plain(origin.port))
        try await carriers.settles(at: .init())
        #expect(try await carriers.exchange(.plain(origin.port)).record.isReused == false)
        try await carriers.settles(at: .init())
        // The limit is for idle connections, not for busy ones.
        let busy = try await carriers.connected(.plain(origin.port))
        try await holds("it stays", for: .milliseconds(200)) { try await carriers.counts.open == 1 }
        try await busy.close()
    }

    @Test func `an idle connection that the server ends is dropped at once`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin { exchange in
            try exchange.respond(body: "ok")
            gate.wait()
            exchange.close()
        }
        let carriers = try await CarrierPoolOnLoop()
        _ = try await carriers.exchange(.plain(origin.port))
        #expect(try await carriers.counts == .init(open: 1, idle: 1))
        gate.open()
        try await carriers.settles(at: .init())
    }

    @Test func `an idle connection that speaks is dropped, and its words are nobody's answer`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin { exchange in
            try exchange.respond(body: "mine")
            guard exchange.head.connection == 0 else { return }
            gate.wait()
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
        }
        let carriers = try await CarrierPoolOnLoop()
        _ = try await carriers.exchange(.plain(origin.port))
        gate.open()
        try await carriers.settles(at: .init())
        #expect(try await carriers.exchange(.plain(origin.port)).record.text.hasSuffix("mine"))
    }

    @Test(arguments: ["bytes", "end", "nothing"])
    func `bytes that came while the loop was busy show before a request is written`(what: String) async throws {
        let listener = try RawListener()
        let carriers = try await CarrierPoolOnLoop()
        let user = try await carriers.connected(.plain(listener.port))
        let peer = try await listener.accept()
        try await user.send("GET / HTTP/1.1\r\n\r\n")
        try await peer.send("HTTP/1.1 204 Done\r\n\r\n")
        _ = try await user.answer()
        try await user.release()
        let (isHeld, arrived) = (Gate(), Gate())
        async let untouched = carriers.takesUntouched(.plain(listener.port), isHeld: isHeld, goesOn: arrived)
        try await offPool { isHeld.wait() }
        switch what {
        case "bytes": try await peer.send("HTTP/1.1 200 OK\r\n\r\n")
        case "end": peer.finishSending()
        default: break
        }
        arrived.open()
        #expect(try await untouched == (what == "nothing"))
    }

    @Test func `a connection that is given back with unread bytes is closed`() async throws {
        let listener = try RawListener()
        let carriers = try await CarrierPoolOnLoop()
        for end in [false, true] {
            let user = try await carriers.connected(.plain(listener.port))
            let peer = try await listener.accept()
            try await user.onLoop { $0.reads = false }
            try await peer.send("unasked")
            if end { peer.finishSending() }
            try await peer.isDelivered()
            try await user.release()
            #expect(try await carriers.counts == .init())
            #expect(try await peer.readToEnd().isEmpty)
        }
    }

    @Test func `a server that speaks first, or leaves at once, gets no request`() async throws {
        let carriers = try await CarrierPoolOnLoop()
        for farewell in ["HTTP/1.1 408 Too slow\r\n\r\n", ""] {
            let gate = Gate()
            let listener = try Listener { peer in
                peer.write(farewell)
                if farewell.isEmpty { peer.close() }
                gate.wait()
            }
            let user = try await carriers.connect(.plain(listener.port))
            // What is there before the connection is handed out, or just after it, decides how it is told.
            try await eventually("an outcome") { user.record.failure != nil || user.record.arrivals > 0 }
            if user.record.arrivals > 0 {
                try await eventually("bytes or an end") { !user.record.bytes.isEmpty || user.record.isEndClean != nil }
                try await user.close()
            }
            gate.open()
            #expect(try await carriers.counts == .init())
        }
    }

    // MARK: Ends and pressure

    @Test func `a carrier tells a reset from an end`() async throws {
        let listener = try RawListener()
        let carriers = try await CarrierPoolOnLoop()
        let user = try await carriers.connected(.plain(listener.port))
        var peer: RawClient? = try await listener.accept()
        peer?.resetOnClose()
        peer = nil
        let record = try await user.ended()
        #expect(record.broken?.kind == .connectionLost)
        #expect(record.isEndClean == nil)
        try await user.release()
        #expect(try await carriers.counts == .init())
    }

    @Test func `a carrier can end its sending side alone`() async throws {
        let listener = try RawListener()
        let carriers = try await CarrierPoolOnLoop()
        let user = try await carriers.connected(.plain(listener.port))
        let peer = try await listener.accept()
        try await user.send("all")
        try await user.onLoop {
            #expect($0.carrier?.canShutDownWriting == true)
            $0.carrier?.shutdownWriting()
        }
        #expect(try await peer.readToEnd() == Array("all".utf8))
        try await peer.send("still here")
        peer.finishSending()
        #expect(try await user.ended().text == "still here")
        #expect(user.record.isEndClean == true)
        try await user.close()
    }

    @Test func `a slow reader slows the writer, and nothing is lost`() async throws {
        let listener = try RawListener()
        let carriers = try await CarrierPoolOnLoop()
        let user = try await carriers.connected(.plain(listener.port))
        let peer = try await listener.accept()
        let bytes = (0..<(9 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }
        try await user.send(bytes)
        try await eventually("the writer waits") { user.record.blocks > 0 }
        #expect(user.record.sent < bytes.count)
        #expect(try await peer.read(count: bytes.count) == bytes)
        // And the other way.
        try await user.onLoop { $0.reads = false }
        let sending = Task { try await peer.send(bytes) }
        try await peer.isStuck()
        try await user.onLoop {
            $0.reads = true
            $0.read()
        }
        try await sending.value
        try await eventually("all of it") { user.record.bytes.count == bytes.count }
        #expect(user.record.bytes == bytes)
        try await user.close()
    }

    @Test func `the addresses of a name are tried in turn`() async throws {
        // Only on one of localhost's families.
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop()
        #expect(try await carriers.exchange(.plain(origin.port, host: "localhost")).record.text.hasSuffix("ok"))
    }
}
