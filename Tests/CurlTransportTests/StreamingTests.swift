import CurlTransport
import TestSupport
import Testing

@Suite("bodies stream both ways, and wait for whoever is slower", .timeLimit(.minutes(1)))
struct StreamingTests {
    @Test(arguments: [1000, 65_536, 1_000_000])
    func `down, with pauses`(every: Int) async throws {
        let origin = try RecordingOrigin { try $0.flood(8 << 20) }
        let pool = try await ConnectionPoolOnLoop()
        var request = Request(origin)
        request.pausesEvery = every
        let probe = try await pool.start(request)
        var pauses = 0
        while probe.record.ends == 0 {
            let seen = pauses
            try await eventually("a pause or the end") { probe.record.pauses > seen || probe.record.ends > 0 }
            pauses = probe.record.pauses
            try await probe.resumeBody()
        }
        let record = probe.record
        #expect(record.error == nil)
        #expect(record.body.count == 8 << 20)
        #expect(record.pauses >= 4)
        #expect(!record.calledAfterEnd)
    }

    @Test func `a paused answer stays with its sender`() async throws {
        let origin = try RecordingOrigin { try $0.flood(256 << 20) }
        let pool = try await ConnectionPoolOnLoop()
        var request = Request(origin)
        request.pausesEvery = 1
        let probe = try await pool.start(request)
        try await eventually("the pause") { probe.record.pauses == 1 }
        // Another exchange continues.
        let other = try RecordingOrigin()
        for _ in 0..<20 { #expect(try await pool.send(Request(other)).text == "ok") }
        #expect(probe.record.pauses == 1)
        #expect(probe.record.body.count < 1 << 20)
        try await probe.cancel()
        try await eventually("the connection ends") { origin.connections[0].isOver }
    }

    @Test(arguments: [true, false])
    func `up, with waits`(known: Bool) async throws {
        let origin = try RecordingOrigin()
        let pool = try await ConnectionPoolOnLoop()
        let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        var request = Request(origin, "PUT")
        request.upload = .fed(known: known ? UInt64(body.count) : nil)
        let probe = try await pool.start(request)
        var sent = 0
        for size in [1, 10, 1000, 70_000, 100_000, 128_989] {
            try await probe.feed(Array(body[sent..<(sent + size)]))
            sent += size
            let so = sent
            try await eventually("\(so) bytes at the origin") { origin.requests.first?.bodyCount == so }
        }
        #expect(sent == body.count)
        try await probe.feed([], isLast: true)
        #expect(try await probe.ended().error == nil)
        #expect(origin.requests.first?.body == body)
        #expect(origin.requests.first?.isComplete == true)
    }

    @Test(arguments: [true, false])
    func `up, as fast as it goes`(known: Bool) async throws {
        let origin = try RecordingOrigin()
        let pool = try await ConnectionPoolOnLoop()
        let body = [UInt8](repeating: 0x61, count: 8 << 20)
        var request = Request(origin, "POST")
        request.upload = known ? .bytes(body) : .chunks(body)
        #expect(try await pool.send(request).text == "ok")
        #expect(origin.requests.first?.bodyCount == body.count)
    }

    @Test func `an upload to somebody who does not read waits`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin { exchange in
            gate.wait()
            try exchange.respond()
        }
        let pool = try await ConnectionPoolOnLoop()
        var request = Request(origin, "POST")
        request.upload = .chunks([UInt8](repeating: 0x61, count: 32 << 20))
        let probe = try await pool.start(request)
        try await eventually("the head arrives") { origin.requests.count == 1 }
        let other = try RecordingOrigin()
        for _ in 0..<20 { #expect(try await pool.send(Request(other)).text == "ok") }
        #expect(probe.record.ends == 0)
        gate.open()
        #expect(try await probe.ended().error == nil)
        #expect(origin.requests.first?.bodyCount == 32 << 20)
    }

    @Test func `both ways at once`() async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.startChunked()
            try exchange.chunk("early")
            try exchange.chunk("after \(try exchange.readBody().bodyCount)")
            try exchange.lastChunk()
        }
        let pool = try await ConnectionPoolOnLoop()
        var request = Request(origin, "POST")
        request.upload = .fed(known: nil)
        let probe = try await pool.start(request)
        try await probe.feed([1, 2, 3])
        try await eventually("the early piece") { probe.record.text == "early" }
        try await probe.feed([4, 5], isLast: true)
        #expect(try await probe.ended().text == "earlyafter 5")
    }

    @Test func `many at once`() async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.respond(body: "\(exchange.head.target) \(try exchange.readBody().bodyCount)")
        }
        let pool = try await ConnectionPoolOnLoop()
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<200 {
                group.addTask {
                    var request = Request(origin, "POST", "/\(number)")
                    request.upload = number % 2 == 0 ? .bytes(Array(repeating: 1, count: number)) : .chunks([1, 2])
                    return try await pool.send(request).text == "/\(number) \(number % 2 == 0 ? number : 2)"
                }
            }
            for try await isRight in group { #expect(isRight) }
        }
        #expect(try await pool.load() == 0)
    }

    // MARK: Cancelling

    @Test(arguments: [Request.Moment.head, .body, .upload])
    func `cancelling from within a call is the last call, and the connection ends`(moment: Request.Moment) async throws
    {
        let origin = try RecordingOrigin { exchange in
            try exchange.startChunked()
            while true { try exchange.chunk("piece") }
        }
        let pool = try await ConnectionPoolOnLoop()
        var request = Request(origin, "POST")
        request.upload = .chunks([1, 2, 3])
        request.cancelsAt = moment
        let probe = try await pool.start(request)
        try await eventually("the connection ends") { origin.connections.first?.isOver == true }
        #expect(probe.record.ends == 0)
        #expect(!probe.record.calledAfterEnd)
        // The pool is as good as before.
        #expect(try await pool.load() == 0)
        let other = try RecordingOrigin()
        #expect(try await pool.send(Request(other)).text == "ok")
    }

    @Test func `cancelling from outside, at any time`() async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.readBody()
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            _ = exchange.waitForPeerToLeave()
        }
        let pool = try await ConnectionPoolOnLoop()
        let early = try await pool.start(Request(origin))
        try await early.cancel()
        let late = try await pool.start(Request(origin))
        try await eventually("half an answer") { late.record.text == "half" }
        try await late.cancel()
        try await late.cancel()
        try await eventually("the connections end") { origin.connections.allSatisfy(\.isOver) }
        #expect([early.record.ends, late.record.ends] == [0, 0])
        #expect(![early, late].contains { $0.record.calledAfterEnd })
        #expect(try await pool.load() == 0)
    }

    @Test(arguments: [Request.Moment.head, .body, .upload])
    func `a delegate that refuses is told so, once`(moment: Request.Moment) async throws {
        let origin = try RecordingOrigin()
        let pool = try await ConnectionPoolOnLoop()
        var request = Request(origin, "POST")
        request.upload = .bytes([1, 2, 3])
        request.refusesAt = moment
        let record = try await pool.send(request)
        #expect(record.error?.kind == .aborted)
        #expect(record.ends == 1)
        #expect(!record.calledAfterEnd)
    }

    @Test(arguments: [Request.Moment.head, .body, .upload, .end])
    func `another exchange can be started from within any call`(moment: Request.Moment) async throws {
        let origin = try RecordingOrigin()
        let pool = try await ConnectionPoolOnLoop()
        var request = Request(origin, "POST", "/first")
        request.upload = .bytes([1, 2, 3])
        request.next = (moment, [Request(origin, "GET", "/second"), Request(origin, "GET", "/third")])
        let probe = try await pool.start(request)
        #expect(try await probe.ended().text == "ok")
        for next in probe.started { #expect(try await next.ended().text == "ok") }
        #expect(probe.started.count >= 2)
        #expect(Set(origin.requests.map(\.target)) == ["/first", "/second", "/third"])
    }
}
