import HTTPMessage
import HTTPServer
import Reactor
import TestSupport
import Testing
import WireText

@Suite("A connection serves any stream of bytes, however they come", .timeLimit(.minutes(2)))
struct StreamTests {
    private static let requests = Array(
        ("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
            + "PUT /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n"
            + "\r\nGET /c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").utf8)

    private static let answers =
        "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n/a hello" + "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n/b abcde"
        + "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n/c "

    @Test func `requests that are cut at any byte are answered as whole ones`() async throws {
        for cut in 0...Self.requests.count {
            let pieces = [Self.requests[..<cut], Self.requests[cut...]]
            #expect(try await Client().answers(to: pieces) == Self.answers, "cut at \(cut)")
        }
    }

    @Test func `requests are answered byte by byte, both ways, with readiness that means nothing`() async throws {
        let client = try await Client(room: 1, lies: true)
        #expect(try await client.answers(to: Self.requests.map { [$0][...] }) == Self.answers)
    }

    @Test func `whichever call fails, the connection ends, and each request has one end`() async throws {
        var whole = 0
        for call in 1...60 {
            let client = try await Client(failing: call, room: 7)
            let text = try await client.answers(to: [Self.requests[..<60], Self.requests[60...]])
            #expect(Self.answers.utf8.starts(with: text.utf8), "call \(call)")
            if text == Self.answers { whole += 1 }
        }
        #expect((1..<60).contains(whole))
    }

    /// A server with one client, whose stream is in memory.
    private struct Client {
        private let loop: EventLoop
        private let server: LoopBound<Serving>
        private let lies: Bool

        init(failing: Int? = nil, room: Int = .max, lies: Bool = false) async throws {
            let loop = try EventLoop.start(name: "stream")
            self.loop = loop
            self.lies = lies
            server = try await loop.run {
                LoopBound(Serving(MemoryStream(failing: failing, room: room), loop), on: loop)
            }
        }

        func answers(to pieces: [ArraySlice<UInt8>]) async throws -> String {
            for piece in pieces {
                try await onLoop { $0.stream.deliver(piece) }
                if lies { try await onLoop { $0.stream.tell([.readable, .writable]) } }
            }
            var count = -1
            while true {
                let now = try await onLoop { serving in
                    serving.stream.giveRoom()
                    return serving.stream.written.count
                }
                if now == count { break }
                count = now
            }
            try await onLoop { $0.stream.end() }
            // The rest is written at the end of a turn.
            try await onLoop { $0.stream.giveRoom() }
            let (text, isClosed, open, connections) = try await onLoop {
                (
                    String(decoding: $0.stream.written, as: UTF8.self), $0.stream.isClosed, $0.echo?.underWay ?? 0,
                    $0.server.count
                )
            }
            #expect(isClosed && open == 0 && connections == 0)
            loop.stop()
            return text
        }

        @discardableResult
        private func onLoop<Value: Sendable>(_ body: @escaping @Sendable (Serving) -> Value) async throws -> Value {
            try await loop.run { body(server.value) }
        }
    }

    private final class Serving {
        let stream: MemoryStream
        var echo: Echo?
        private(set) var server: ServerLoop!

        init(_ stream: MemoryStream, _ loop: EventLoop) {
            self.stream = stream
            server = ServerLoop(
                ServerSettings(), on: loop, acceptFailed: { _ in },
                makeHandler: { [unowned self] client in
                    let echo = Echo(client)
                    self.echo = echo
                    return echo
                })
            server.serve(stream, listener: 0)
        }
    }

    /// Answers with the request's path and body.
    private final class Echo: ProgramStreamHandler {
        private unowned let client: any ProgramStream
        private(set) var underWay = 0
        private var body: [UInt8] = []

        init(_ client: any ProgramStream) { self.client = client }

        func requestBegan() {
            underWay += 1
            body = client.request.with { head, bytes in [UInt8](copying: bytes.extracting(head.target.range)) }
            body.append(UInt8(ascii: " "))
            bodyArrived()
        }

        func requestRefused(_ error: MessageError) {
            underWay += 1
            finish(error.status)
        }

        func bodyArrived() {
            var room: InlineArray<4, UInt8> = .init(repeating: 0)
            while true {
                var span = room.mutableSpan
                guard let step = try? client.readBody(into: &span) else { return finish(400) }
                switch step {
                case .bytes(let count): for index in 0..<count { body.append(span[index]) }
                case .wait: return
                case .gone: return programLeft(.gone)
                case .cut: return finish(400)
                case .end: return finish(200)
                }
            }
        }

        private func finish(_ status: Int) {
            underWay -= 1
            let keepsOpen = status == 200 && client.request.head.keepAlive
            client.answer(AnswerHead(status, keepsOpen: keepsOpen), reason: Array("OK".utf8).span) { output in
                output.append("Content-Length: ")
                output.append(decimal: UInt64(body.count))
                output.append("\r\n")
            }
            guard client.write(body.span, .all) != nil else { return }
            client.finish(trailers: [], keepsOpen: keepsOpen)
        }

        func roomCame() {}
        func programLeft(_ leaving: ProgramLeaving) { underWay -= 1 }
        func deadlinePassed() { client.close(cut: true) }
    }
}
