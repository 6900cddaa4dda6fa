import Proxy
import Reports
import TestSupport
import Testing

@Suite(
    "one side of a tunnel or an upgraded connection may end before the other", .stopsProxies, .timeLimit(.minutes(1)))
struct BytePipeEndTests {
    /// No timeout of the proxy is as short.
    private static let soon = Duration.seconds(5)

    // MARK: In order

    @Test(arguments: BytePipe.Kind.allCases, [true, false])
    func `the client's end is passed on, and the other direction goes on`(
        kind: BytePipe.Kind, closes: Bool
    ) async throws {
        let pipe = try await BytePipe(kind)
        let (client, end) = try await pipe.open()
        try await client.send("question")
        client.finishSending()
        #expect(try await end.readToEnd(within: Self.soon) == Array("question".utf8))
        // Time itself: the proxy ends a side that can't be passed on after 500 ms.
        try await holds("it stays", for: .milliseconds(700)) { await pipe.inFlight == 1 }
        for piece in ["one ", "two ", "three"] {
            try await end.send(piece)
            try await end.isRead()
        }
        if closes { end.close() } else { end.finishSending() }
        #expect(try await client.readToEnd() == Array("one two three".utf8))
    }

    @Test(arguments: BytePipe.Kind.allCases)
    func `the upstream's end is passed on, and the client's direction goes on`(kind: BytePipe.Kind) async throws {
        let pipe = try await BytePipe(kind)
        let (client, end) = try await pipe.open()
        try await end.send("answer")
        end.finishSending()
        #expect(try await client.readToEnd(within: Self.soon) == Array("answer".utf8))
        // Time itself: the proxy ends a side that can't be passed on after 500 ms.
        try await holds("it stays", for: .milliseconds(700)) { await pipe.inFlight == 1 }
        let up = pattern(4 << 20, step: 31)
        async let sent: Void = client.send(up)
        #expect(try await end.read(count: up.count) == up)
        try await sent
        client.finishSending()
        #expect(try await end.readToEnd(within: Self.soon).isEmpty)
        try await pipe.proxy.isOver()
    }

    @Test(arguments: BytePipe.Kind.allCases)
    func `all bytes before an end arrive before it`(kind: BytePipe.Kind) async throws {
        let (client, end) = try await BytePipe(kind).open(receiveBuffer: 4096)
        let piece = [UInt8](repeating: 1, count: 1 << 20)
        async let sent: Void = end.send(piece, times: 8, within: .seconds(20))
        #expect(try await client.read(count: 8 << 20).count == 8 << 20)
        try await sent
        end.close()
        #expect(try await client.readToEnd().isEmpty)
    }

    @Test(arguments: BytePipe.Kind.allCases)
    func `an end right behind a megabyte loses none of it`(kind: BytePipe.Kind) async throws {
        let (client, end) = try await BytePipe(kind).open()
        try await client.send("x")
        _ = try await end.read(count: 1)
        try await end.send([UInt8](repeating: 3, count: 1 << 20))
        end.close()
        #expect(try await client.readToEnd(within: Self.soon).count == 1 << 20)
    }

    @Test(arguments: BytePipe.Kind.allCases)
    func `the upstream's end comes behind all that it has sent`(kind: BytePipe.Kind) async throws {
        let (client, end) = try await BytePipe(kind).open()
        let down = pattern(8 << 20, step: 57)
        async let sent: Void = end.send(down)
        try await end.isStuck()
        async let received = client.readToEnd(within: .seconds(30))
        try await sent
        end.finishSending()
        #expect(try await received == down)
        try await client.send("thanks")
        client.finishSending()
        #expect(try await end.readToEnd(within: Self.soon) == Array("thanks".utf8))
    }

    /// Some of what was sent waits for room when the client ends: for which totals, the kernel's buffers say.
    @Test(arguments: BytePipe.Kind.allCases)
    func `the client's end comes behind all that it has sent`(kind: BytePipe.Kind) async throws {
        let pipe = try await BytePipe(kind)
        for count in stride(from: 3_900_000, to: 4_150_000, by: 36_000) {
            let (client, end) = try await pipe.open()
            async let sent: Void = client.send([UInt8](repeating: 9, count: count), within: .seconds(30))
            try await client.isStuck()
            async let received = end.readToEnd(within: .seconds(30)).count
            try await sent
            client.finishSending()
            #expect(try await received == count)
        }
    }

    @Test(arguments: BytePipe.Kind.allCases)
    func `bytes that the client sends with its end arrive behind the upstream's end, too`(kind: BytePipe.Kind)
        async throws
    {
        let (client, end) = try await BytePipe(kind).open()
        end.finishSending()
        #expect(try await client.readToEnd(within: Self.soon).isEmpty)
        let up = pattern(6 << 20, step: 13)
        async let sent: Void = client.send(up)
        try await client.isStuck()
        async let received = end.readToEnd(within: .seconds(30))
        try await sent
        client.finishSending()
        #expect(try await received == up)
    }

    // MARK: Abruptly

    @Test(arguments: BytePipe.Kind.allCases)
    func `an upstream that is gone ends the pipe when the client sends again`(kind: BytePipe.Kind) async throws {
        let pipe = try await BytePipe(kind)
        let (client, end) = try await pipe.open()
        end.close()
        #expect(try await client.readToEnd(within: Self.soon).isEmpty)
        #expect(await pipe.inFlight == 1)
        try await client.send("is anybody there?")
        try await pipe.proxy.isOver()
    }

    @Test(arguments: BytePipe.Kind.allCases, [true, false])
    func `a reset of one side ends the other within a second`(kind: BytePipe.Kind, clientResets: Bool) async throws {
        let pipe = try await BytePipe(kind)
        let fastest = try await shortest(under: .seconds(1)) {
            var (client, end): (RawClient?, RawClient?) = try await pipe.open()
            try await client?.send("x")
            _ = try await end?.read(count: 1)
            let other = clientResets ? end : client
            let start = ContinuousClock.now
            if clientResets {
                client?.resetOnClose()
                client = nil
            } else {
                end?.resetOnClose()
                end = nil
            }
            #expect(try await other?.readToEnd() == [])
            return .now - start
        }
        #expect(fastest < .seconds(1))
    }

    @Test(arguments: BytePipe.Kind.allCases)
    func `a client that is reset releases an upstream that floods it`(kind: BytePipe.Kind) async throws {
        let pipe = try await BytePipe(kind)
        let (first, end) = try await pipe.open(receiveBuffer: 4096)
        var client: RawClient? = first
        let piece = [UInt8](repeating: 1, count: 1 << 20)
        let flood = Task { try await end.send(piece, times: 1000, within: .seconds(20)) }
        _ = try await client?.read(count: 1 << 20)
        client?.resetOnClose()
        client = nil
        _ = consume first
        await #expect(throws: (any Error).self) { try await flood.value }
    }

    // MARK: By the proxy

    @Test(arguments: BytePipe.Kind.allCases)
    func `a pipe in which nothing moves ends after idle_timeout`(kind: BytePipe.Kind) async throws {
        let pipe = try await BytePipe(kind, idleTimeout: "700ms")
        let (client, end) = try await pipe.open()
        var start = ContinuousClock.now
        // Time itself: as long as something moves, it stays.
        for _ in 0..<9 {
            try await Task.sleep(for: .milliseconds(100))
            start = .now
            try await client.send("x")
            _ = try await end.read(count: 1)
        }
        #expect(try await client.readToEnd(within: .seconds(15)).isEmpty)
        #expect(try await end.readToEnd(within: .seconds(15)).isEmpty)
        #expect(ContinuousClock.now - start >= .milliseconds(690))
    }

    @Test(arguments: BytePipe.Kind.allCases)
    func `draining leaves a pipe its time, and then ends it`(kind: BytePipe.Kind) async throws {
        let pipe = try await BytePipe(kind)
        let (client, end) = try await pipe.open()
        async let drained: Void = pipe.proxy.server.drain(within: .seconds(1))
        try await refusesConnections(pipe.proxy.port)
        try await client.send("still")
        #expect(try await end.read(count: 5) == Array("still".utf8))
        #expect(try await client.readToEnd().isEmpty)
        #expect(try await end.readToEnd().isEmpty)
        await drained
    }
}
