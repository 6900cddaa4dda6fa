import HTTPServer
import Reactor
import TestSupport
import Testing

@Suite("a large answer leaves the loop to others", .timeLimit(.minutes(1)))
struct LargeAnswerTests {
    private static let size = 4 << 20

    private final class Serving {
        let stream: MemoryStream
        private(set) var server: ServerLoop!

        init(_ stream: MemoryStream, _ loop: EventLoop) {
            self.stream = stream
            server = ServerLoop(
                ServerSettings(), on: loop, acceptFailed: { _ in },
                makeHandler: { connection in
                    AsyncExchange(connection, maxBodyBytes: 0) { _ in
                        ServerResponse(
                            status: 200, body: .whole([UInt8](repeating: 0x61, count: LargeAnswerTests.size)))
                    }
                })
            server.serve(stream, listener: 0)
        }
    }

    /// Records in each turn how much was written, until all is.
    private static func recordEachTurn(_ serving: LoopBound<Serving>, _ counts: Recorder<Int>) {
        serving.loop.execute {
            let count = serving.value.stream.written.count
            if counts.all.last != count { counts.append(count) }
            if count < size { recordEachTurn(serving, counts) }
        }
    }

    @Test func `each turn writes a quarter of a MiB at most, to a client that takes everything`() async throws {
        let loop = try EventLoop.start(name: "large")
        defer { loop.stop() }
        let serving = try await loop.run { LoopBound(Serving(MemoryStream(), loop), on: loop) }
        let counts = Recorder<Int>()
        try await loop.run { serving.value.stream.deliver("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8) }
        Self.recordEachTurn(serving, counts)
        try await eventually("all is written") { counts.all.last ?? 0 >= Self.size }
        // Between two looks, the end of one turn and the beginning of the next may write.
        for (before, after) in zip(counts.all, counts.all.dropFirst()) { #expect(after - before <= 600 * 1024) }
        #expect(counts.all.count > 6)
    }

    @Test func `a client that takes little gets all of it, and no more than a piece waits`() async throws {
        let loop = try EventLoop.start(name: "large")
        defer { loop.stop() }
        let serving = try await loop.run { LoopBound(Serving(MemoryStream(room: 50_000), loop), on: loop) }
        try await loop.run { serving.value.stream.deliver("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8) }
        try await eventually("all is written") {
            try await loop.run {
                serving.value.stream.giveRoom()
                return serving.value.stream.written.count >= Self.size
            }
        }
        let (head, body) = try await loop.run {
            let text = serving.value.stream.written
            let end = text.firstIndex(of: 0x61) ?? 0
            return (String(decoding: text[..<end], as: UTF8.self), text.count(where: { $0 == 0x61 }))
        }
        #expect(head.hasPrefix("HTTP/1.1 200 "))
        #expect(body >= Self.size)
    }
}
