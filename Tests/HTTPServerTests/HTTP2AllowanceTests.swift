import Foundation
import HTTPMessage
import HTTPServer
import Reactor
import TestSupport
import Testing

@Suite("The streams of one connection have an allowance together", .timeLimit(.minutes(1)))
struct HTTP2AllowanceTests {
    /// A request whose head has 60 KB.
    private static func large(_ path: String) -> HTTP2Client.Request {
        var request = HTTP2Client.Request.get(path)
        for index in 0..<15 { request.fields.append(("x-\(index)", String(repeating: "a", count: 4000))) }
        return request
    }

    @Test func `large heads past the allowance are refused, and later ones are served`() async throws {
        let client = try await HTTP2Client()
        var streams: [Int32] = []
        for _ in 0..<20 { streams.append(try await client.send(Self.large("/held"))) }
        let answers = try await client.answers()
        let refused = streams.filter { answers[$0]?.events == ["closed 7"] }
        #expect((14...16).contains(refused.count), "\(refused.count)")
        // A refused stream is not given to a handler.
        #expect(try await client.begun == 20 - refused.count)
        try await client.release()
        let next = try await client.send(Self.large("/b"))
        #expect(try await client.answers()[next]?.isWhole == true)
        let kept = streams.filter { !refused.contains($0) }
        let ends = try await client.answers()
        #expect(kept.allSatisfy { ends[$0]?.isWhole == true })
    }

    @Test func `a head goes with its answer, even if the client does not take the answer`() async throws {
        let client = try await HTTP2Client(window: 10)
        var streams: [Int32] = []
        for _ in 0..<60 { streams.append(try await client.send(Self.large("/stalled"))) }
        let answers = try await client.answers()
        #expect(streams.allSatisfy { answers[$0]?.events == ["head"] })
    }

    @Test func `the number in the pages is max_connections times the allowance`() throws {
        let all = "\((ServerSettings().maxConnections * ServerSettings.allowance) >> 20) MiB"
        for page in ["sizing", "limits"] {
            let text = try String(contentsOfFile: "\(Repository.root)/docs/\(page).md", encoding: .utf8)
            #expect(text.contains("\(ServerSettings.allowance >> 10) KiB"), "\(page)")
            #expect(text.contains(all), "\(page): \(all)")
        }
    }

    @Test func `usual requests on a hundred streams are all served`() async throws {
        let client = try await HTTP2Client()
        var streams: [Int32] = []
        var request = HTTP2Client.Request.get("/held")
        request.fields.append(("cookie", String(repeating: "a", count: 2500)))
        for _ in 0..<100 { streams.append(try await client.send(request)) }
        try await eventually("all are begun") {
            _ = try await client.answers()
            return try await client.begun == 100
        }
        try await client.release()
        let answers = try await client.answers()
        #expect(streams.allSatisfy { answers[$0]?.isWhole == true })
    }

    @Test func `bodies that nobody reads stop at the connection's window, and go on once they are read`() async throws {
        let client = try await HTTP2Client()
        let text = String(repeating: "0123456789", count: 6000)
        var streams: [Int32] = []
        for _ in 0..<20 { streams.append(try await client.send(.post("/held"), body: text)) }
        _ = try await client.answers()
        let unsent = try await client.unsent
        #expect(20 * text.utf8.count - unsent <= 192 << 10)
        // A request without a body does not wait.
        let other = try await client.send(.get("/b"))
        #expect(try await client.answers()[other]?.isWhole == true)
        try await client.release()
        let answers = try await client.answers()
        #expect(streams.allSatisfy { answers[$0]?.body.hasSuffix(text) == true })
    }

    @Test func `a body that is reset unread makes room for others`() async throws {
        let client = try await HTTP2Client()
        let text = String(repeating: "0123456789", count: 6000)
        for _ in 0..<10 {
            var streams: [Int32] = []
            for _ in 0..<3 { streams.append(try await client.send(.post("/held"), body: text)) }
            _ = try await client.answers()
            for stream in streams { try await client.reset(stream) }
        }
        let next = try await client.send(.post("/b"), body: text)
        #expect(try await client.answers()[next]?.isWhole == true)
    }

    @Test func `answers that the client does not take stop together, and each stream has begun`() async throws {
        let client = try await HTTP2Client(window: 10)
        var streams: [Int32] = []
        for _ in 0..<40 { streams.append(try await client.send(.get("/large"))) }
        try await eventually("the first bytes of each") { [streams] in
            let answers = try await client.answers()
            return streams.allSatisfy { answers[$0]?.body.isEmpty == false }
        }
        let taken = try await client.taken
        #expect(taken <= (128 + 40 * 5) << 10, "\(taken)")
        // Another answer passes within the windows that the client gives.
        let other = try await client.send(.get("/empty"))
        #expect(try await client.answers()[other]?.isWhole == true)
    }

    @Test func `answers that waited for others go on when those are taken`() async throws {
        let client = try await HTTP2Client(window: 100_000)
        var streams: [Int32] = []
        for _ in 0..<8 { streams.append(try await client.send(.get("/large"))) }
        _ = try await client.answers()
        try await client.takeAll()
        try await eventually("all of all") { [streams] in
            let answers = try await client.answers()
            return streams.allSatisfy { answers[$0]?.body.count == 1 << 20 }
        }
    }

    @Test func `the heads of a turn are counted as decoded, not by the bytes that stand for them`() async throws {
        let client = try await HTTP2Client()
        _ = try await client.answers()
        // The HPACK table has the fields, so that each further head takes some fifty bytes.
        for _ in 0..<40 { _ = try await client.send(Self.large("/empty")) }
        _ = try await client.answers()
        let turns = try await client.turns
        #expect(turns.count == 40)
        let most = Dictionary(turns.map { ($0, 1) }, uniquingKeysWith: +).values.max() ?? 0
        #expect(most <= 8, "\(most) heads of 60 KB in one turn")
    }

    @Test func `one turn begins only a share of a client's requests`() async throws {
        let client = try await HTTP2Client()
        _ = try await client.answers()
        for _ in 0..<100 { _ = try await client.send(.get("/empty")) }
        _ = try await client.answers()
        let most = Dictionary(try await client.turns.map { ($0, 1) }, uniquingKeysWith: +).values.max() ?? 0
        #expect(most <= 64, "\(most) requests in one turn")
    }
}

@Suite("Pipelined requests have a share of a turn", .timeLimit(.minutes(1)))
struct PipelineShareTests {
    /// Answers at once, and notes the turn of each request.
    private final class Refusing: ProgramStreamHandler {
        private let client: any ProgramStream
        private let noted: () -> Void

        init(_ client: any ProgramStream, noted: @escaping () -> Void) {
            self.client = client
            self.noted = noted
        }

        func requestBegan() {
            noted()
            client.answer(AnswerHead(204), reason: Array("No".utf8).span) { _ in }
            client.finish(trailers: [], keepsOpen: true)
        }

        func requestRefused(_ error: MessageError) { client.close(cut: true) }
        func bodyArrived() {}
        func roomCame() {}
        func programLeft(_ leaving: ProgramLeaving) {}
        func deadlinePassed() {}
    }

    private final class Serving {
        let stream = MemoryStream()
        private var server: ServerLoop!
        private(set) var turns: [UInt64] = []

        init(_ loop: EventLoop) {
            server = ServerLoop(
                ServerSettings(), on: loop, acceptFailed: { _ in },
                makeHandler: { [unowned self] client in
                    Refusing(client) { [unowned self] in turns.append(loop.now.nanoseconds) }
                })
            server.serve(stream, listener: 0)
        }
    }

    /// - Parameter field: bytes of a field in each request.
    @Test(arguments: [0, 30_000]) func `many requests in one piece are begun in several turns`(field: Int) async throws
    {
        let loop = try EventLoop.start(name: "pipeline")
        defer { loop.stop() }
        let serving = try await loop.run { LoopBound(Serving(loop), on: loop) }
        let request = "GET / HTTP/1.1\r\nHost: h\r\nX: \(String(repeating: "a", count: field))\r\n\r\n"
        let all = Array(String(repeating: request, count: 100).utf8)
        try await loop.run { serving.value.stream.deliver(all) }
        let turns = try await eventually("a hundred answers") {
            let turns = try await loop.run { serving.value.turns }
            return turns.count == 100 ? turns : nil
        }
        let most = Dictionary(turns.map { ($0, 1) }, uniquingKeysWith: +).values.max() ?? 0
        #expect(most <= (field == 0 ? 16 : 2), "\(most) in one turn")
    }
}
