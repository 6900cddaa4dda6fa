import HTTP2
import Reactor
import Testing

/// A server's session, and a client that writes its frames itself.
private final class Flooded {
    let session: HTTP2Session
    private var now = LoopTime(nanoseconds: 1)
    private(set) var output = ByteBuffer()

    init() throws {
        session = try HTTP2Session(.server, spares: SpareBuffers(), at: now)
        try receive(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4, 0, 0, []))
    }

    func frame(_ type: UInt8, _ flags: UInt8, _ stream: Int, _ payload: [UInt8]) -> [UInt8] {
        [
            0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags, 0, 0, UInt8(stream >> 8),
            UInt8(stream & 255),
        ] + payload
    }

    func receive(_ bytes: [UInt8]) throws {
        var rest = bytes
        repeat {
            rest.removeFirst(try session.receive(rest.span, at: now))
            while session.next() != nil {}
        } while session.load.isPaused
        output.removeAll()
        try session.fill(&output, limit: 1 << 20)
        while session.next() != nil {}
    }

    /// Sends the frame until the connection ends.
    /// - Returns: the code of the GOAWAY frame; `nil` when it does not end.
    func flood(_ bytes: [UInt8], pause: UInt64 = 0) -> UInt8? {
        for _ in 0..<10_000 {
            now = now.advanced(by: pause)
            do { try receive(bytes) } catch {
                output.removeAll()
                try? session.fill(&output, limit: 1 << 20)
                let last = output.withBytes { copied($0) }.suffix(17)
                return last.count == 17 && last[last.startIndex + 3] == 7 ? last.last : nil
            }
        }
        return nil
    }

    /// GET / of a host, without an end.
    static let head: [UInt8] = [0x82, 0x86, 0x84, 0x41, 1, 0x61]
}

struct FloodTests {
    @Test func `many frames that do nothing end the connection`() throws {
        let stream = try Flooded()
        try stream.receive(stream.frame(1, 4, 1, Flooded.head))
        let frames: [[UInt8]] = [
            stream.frame(0, 0, 1, []), stream.frame(0, 8, 1, [0]), stream.frame(2, 0, 3, [0, 0, 0, 0, 15]),
            stream.frame(4, 0, 0, []), stream.frame(6, 0, 0, [1, 2, 3, 4, 5, 6, 7, 8]),
            stream.frame(8, 0, 0, [0, 0, 0, 1]),
        ]
        for frame in frames {
            let flooded = try Flooded()
            try flooded.receive(flooded.frame(1, 4, 1, Flooded.head))
            #expect(flooded.flood(frame) == 11, "frame of type \(frame[3])")
        }
    }

    @Test func `a keep-alive every 100 milliseconds is no flood`() throws {
        let flooded = try Flooded()
        #expect(flooded.flood(flooded.frame(6, 0, 0, [1, 2, 3, 4, 5, 6, 7, 8]), pause: 100_000_000) == nil)
    }

    /// CANCEL, and NO_ERROR, with which a stream does not end in order either.
    @Test(arguments: [8, 0]) func `streams that are reset at once end the connection`(code: UInt8) throws {
        let flooded = try Flooded()
        #expect(throws: HTTP2Error.flood) {
            for stream in stride(from: 1, to: 1400, by: 2) {
                try flooded.receive(
                    flooded.frame(1, 5, stream, Flooded.head) + flooded.frame(3, 0, stream, [0, 0, 0, code]))
            }
        }
    }

    @Test func `streams that the server resets for a broken rule end the connection`() throws {
        let flooded = try Flooded()
        #expect(throws: HTTP2Error.flood) {
            for stream in stride(from: 1, to: 1400, by: 2) {
                try flooded.receive(flooded.frame(1, 4, stream, Flooded.head))
                flooded.session.reset(Int32(stream), .protocolError)
            }
        }
    }

    @Test func `bytes of a body do not pay for resets`() throws {
        let flooded = try Flooded()
        try flooded.receive(flooded.frame(1, 4, 1, Flooded.head))
        let paid = (0..<40).flatMap { _ in flooded.frame(0, 0, 1, [1]) } + flooded.frame(1, 4, 3, Flooded.head)
        try flooded.receive(paid)
        let reset = flooded.frame(3, 0, 3, [0, 0, 0, 8])
        #expect(flooded.flood((0..<40).flatMap { _ in flooded.frame(0, 0, 1, [1]) } + reset) == 11)
    }

    @Test func `streams that the peer makes the server reset end the connection`() throws {
        let flooded = try Flooded()
        let made = (0..<120).flatMap { index in
            let id = index * 2 + 1
            // A window above 2^31 - 1 (RFC 9113, section 6.9.1).
            return flooded.frame(1, 4, id, Flooded.head) + flooded.frame(8, 0, id, [0x7F, 0xFF, 0xFF, 0xFF])
        }
        try flooded.receive(made)
        #expect(flooded.output.count >= 100 * 13)
        #expect(flooded.flood(flooded.frame(8, 0, 0, [0, 0, 0, 1])) == 11)
    }
}
