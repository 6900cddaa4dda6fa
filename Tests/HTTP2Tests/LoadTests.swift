import HTTP2
import Reactor
import Testing

/// A server's session, and bytes of a client that repeats a large field of its HPACK table.
private final class Repeated {
    let session: HTTP2Session
    private(set) var heads: [Int32] = []
    private(set) var largest = 0
    private(set) var fields = 0

    init(_ settings: HTTP2Settings = HTTP2Settings()) throws {
        session = try HTTP2Session(.server, settings, spares: SpareBuffers(), at: LoopTime(nanoseconds: 1))
    }

    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4, 0, 0, [])

    static func frame(_ type: UInt8, _ flags: UInt8, _ stream: Int, _ payload: [UInt8]) -> [UInt8] {
        [
            0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags, 0, 0, UInt8(stream >> 8),
            UInt8(stream & 255),
        ] + payload
    }

    /// GET / of `a`, then a field of 3,900 bytes: new at first, then from the table.
    static func head(_ stream: Int, repeats: Int) -> [UInt8] {
        let start: [UInt8] = [0x82, 0x86, 0x84, 0x41, 1, 0x61]
        // Length 3,900 with a prefix of 7 bits.
        let new: [UInt8] = [0x40, 1, 0x62, 0x7F, 0xBD, 0x1D] + Array(repeating: UInt8(ascii: "c"), count: 3900)
        // The table has the large field at 62, and `:authority` at 63.
        let again = start[..<3] + [0xBF] + Array(repeating: 0xBE, count: repeats)
        return frame(1, 5, stream, stream == 1 ? start + new : Array(again))
    }

    /// - Returns: the number of calls of `receive`.
    func receive(_ bytes: [UInt8]) throws -> Int {
        var (rest, calls) = (bytes[...], 0)
        repeat {
            let piece = Array(rest)
            rest = rest.dropFirst(try session.receive(piece.span, at: LoopTime(nanoseconds: 1)))
            calls += 1
            largest = max(largest, session.load.decoded)
            while let event = session.next() {
                guard case .head(let id, let block) = event else { continue }
                heads.append(id)
                session.received.forEach(block.fields) { _, value in fields += value.count == 3900 ? 1 : 0 }
            }
        } while !rest.isEmpty || session.load.isPaused
        return calls
    }
}

@Suite("A session tells its load, and bounds it")
struct LoadTests {
    @Test func `few bytes that stand for many heads are decoded in several calls, and every head is whole`() throws {
        let server = try Repeated()
        let bytes = (0..<60).flatMap { Repeated.head($0 * 2 + 1, repeats: 15) }
        let calls = try server.receive(Repeated.preface + bytes)
        #expect(server.heads == (0..<60).map { Int32($0 * 2 + 1) })
        #expect(server.fields == 1 + 59 * 15)
        #expect(calls >= 25)
        // The limit and the head that reached it.
        #expect(server.largest < (64 + 64 + 4) << 10)
    }

    @Test(arguments: [1, 7, 46, 100, 1000]) func `a pause at any byte loses no head`(cut: Int) throws {
        var settings = HTTP2Settings()
        settings.maxDecodedBytes = 1
        let server = try Repeated(settings)
        var bytes = (Repeated.preface + (0..<20).flatMap { Repeated.head($0 * 2 + 1, repeats: 3) })[...]
        while !bytes.isEmpty {
            _ = try server.receive(Array(bytes.prefix(cut)))
            bytes = bytes.dropFirst(cut)
        }
        #expect(server.heads == (0..<20).map { Int32($0 * 2 + 1) })
        #expect(server.fields == 1 + 19 * 3)
    }

    @Test func `bodies that nobody consumes shut the connection's window, and dropped ones open it`() throws {
        var settings = HTTP2Settings()
        settings.boundsBodies = true
        settings.connectionWindow = 100_000
        let peers = try MemoryPeers(server: settings)
        peers.serverConsumes = false
        // The client's connection has this window only once it knows of it.
        try peers.exchange()
        let piece = Array(repeating: UInt8(ascii: "x"), count: 60_000)
        var streams: [Int32] = []
        for _ in 0..<4 {
            let id = try peers.client.request(.post, hasBody: true)
            streams.append(id)
            #expect(peers.client.write(piece.span, to: id) == piece.count)
            try peers.exchange()
        }
        #expect(streams.reduce(0) { $0 + peers.client.unsent(of: $1) } == 140_000)
        // One is dropped, one is consumed, one is reset: all three make room.
        peers.server.forfeit(streams[0])
        try peers.exchange()
        #expect(streams.reduce(0) { $0 + peers.client.unsent(of: $1) } == 80_000)
        peers.server.consume(streams[1], 40_000)
        try peers.exchange()
        #expect(streams.reduce(0) { $0 + peers.client.unsent(of: $1) } == 40_000)
        for stream in streams[..<3] { peers.client.reset(stream, .cancel) }
        try peers.exchange()
        #expect(peers.client.unsent(of: streams[3]) == 0)
    }

    @Test func `ignored bytes and half a window of unread ones shut nothing for good`() throws {
        var settings = HTTP2Settings()
        settings.boundsBodies = true
        settings.connectionWindow = 100_000
        let peers = try MemoryPeers(server: settings)
        peers.serverConsumes = false
        try peers.exchange()
        let piece = Array(repeating: UInt8(ascii: "x"), count: 55_000)
        let unread = try peers.client.request(.post, hasBody: true)
        _ = peers.client.write(piece.span, to: unread)
        try peers.exchange()
        for _ in 0..<20 {
            let dropped = try peers.client.request(.post, hasBody: true)
            _ = peers.client.write(piece.span.extracting(first: 30_000), to: dropped)
            try peers.exchange()
            peers.server.reset(dropped, .cancel)
            // On its way when the reset comes.
            _ = peers.client.write(piece.span.extracting(first: 10_000), to: dropped)
            try peers.exchange()
            let taken = try peers.client.request(.post, hasBody: true)
            _ = peers.client.write(piece.span.extracting(first: 30_000), to: taken)
            try peers.exchange()
            #expect(peers.client.unsent(of: taken) == 0)
            peers.server.consume(taken, 30_000)
            peers.client.reset(taken, .cancel)
            try peers.exchange()
        }
    }

    @Test func `unsent heads and bodies are counted until they are sent or their stream ends`() throws {
        var client = HTTP2Settings()
        client.streamWindow = 100
        let peers = try MemoryPeers(client: client)
        peers.clientConsumes = false
        let id = try peers.client.request(.get, hasBody: false)
        try peers.exchange()
        #expect(peers.server.load.unsentBytes == 0)
        try peers.server.interim(id, HTTP2FieldList(":status", "103", "link", "abc"))
        try peers.server.answer(id, HTTP2FieldList(":status", "200"), hasBody: true)
        #expect(peers.server.load.unsentHeads == 7 + 3 + 7 + 7 + 3)
        #expect(peers.server.write(Array(repeating: 1, count: 1000).span, to: id) == 1000)
        #expect(peers.server.load.unsentBytes == 1000)
        try peers.exchange()
        #expect(peers.server.load.unsentHeads == 0)
        #expect(peers.server.load.unsentBytes == 900)
        peers.client.reset(id, .cancel)
        try peers.exchange()
        #expect(peers.server.load.unsentBytes == 0)
    }

    @Test func `streams that are refused as too much count as resets by the peer`() throws {
        let server = try Repeated()
        _ = try server.receive(Repeated.preface)
        var output = ByteBuffer()
        #expect(throws: HTTP2Error.flood) {
            for stream in stride(from: 1, to: 1400, by: 2) {
                _ = try server.receive(Repeated.head(stream, repeats: 1))
                server.session.refuse(Int32(stream))
                output.removeAll()
                try server.session.fill(&output, limit: 1 << 20)
            }
        }
    }
}
