import CurlTransport
import HTTPMessage
import Reactor
import Synchronization
import TestSupport
import Testing
import WireText

@testable import Proxy

@Suite("requests on the connections to an HTTP/2 origin", .timeLimit(.minutes(1)))
struct HTTP2OriginTests {
    /// A request without a body.
    private final class Call: UpstreamStreamDelegate, Sendable {
        struct Record: Sendable {
            var body = ""
            var error: TransportError?
            var hasEnded = false
        }

        private let head: String
        private let step: HeadStep
        private let state = Mutex(Record())
        var record: Record { state.withLock { $0 } }

        init(_ path: String, _ step: HeadStep) {
            head = "GET \(path) HTTP/1.1\r\nHost: localhost\r\n"
            self.step = step
        }

        func result() async throws -> Record {
            try await eventually("an end") { record.hasEnded ? record : nil }
        }

        func upstreamConnected(isReused: Bool) {}
        var hasTokenEnded: Bool { false }
        var isWanted: Bool { true }
        var mayReplay: Bool { false }
        func writeHead(_ form: HeadForm, to output: inout ByteBuffer) -> HeadStep {
            output.append(Array(head.utf8))
            return step
        }
        func upstreamAnswered(_ head: borrowing ResponseHead) -> Bool { true }
        func answerRoom() -> Int { .max }
        func mayReadAhead() -> Bool { true }
        func upstreamSent(_ body: Span<UInt8>) -> BodyTaking {
            let text = String(decoding: [UInt8](copying: body), as: UTF8.self)
            state.withLock { $0.body += text }
            return .taken
        }
        func takeUpload(into bytes: inout MutableSpan<UInt8>) -> UploadStep { .end }
        func takeTrailers() -> [(name: [UInt8], value: [UInt8])] { [] }
        func upstreamEndedItsSide() {}
        func upstreamEnded(_ end: UpstreamEnd) {
            let error = end.error
            state.withLock {
                $0.error = error
                $0.hasEnded = true
            }
        }
    }

    /// Belongs to the loop's thread.
    private final class Connections: @unchecked Sendable {
        var pool: HTTP2Pool?

        init(on loop: EventLoop, _ liveness: HTTP2Liveness) {
            let carriers = CarrierPool(options: PoolOptions(), loop: loop)
            pool = HTTP2Pool(carriers, buffers: UpstreamStreamPool(loop: loop), liveness: liveness)
        }
    }

    /// `Fixtures/h2_server.py`, and connections to it.
    private struct Peers {
        let server: ChildProcess
        private let port: UInt16
        private let loop: EventLoop
        private let connections: Connections

        init(_ liveness: HTTP2Liveness = HTTP2Liveness()) async throws {
            server = try ChildProcess([try Repository.python(), Repository.fixture("h2_server.py")])
            port = try await server.printedPort()
            let loop = try EventLoop.start(name: "liveness")
            self.loop = loop
            connections = try await loop.run { Connections(on: loop, liveness) }
        }

        func begin(_ path: String, _ step: HeadStep = .send) async throws -> Call {
            let (call, connections, port) = (Call(path, step), connections, port)
            try await loop.run {
                let origin = Origin(scheme: .http, host: "127.0.0.1", port: port)
                let exchange = HTTP2UpstreamStream(UpstreamRequest(origin: origin), call)
                let end = connections.pool?.origin(.init(origin: origin, isKnown: true))?.begin(exchange)
                if let end { call.upstreamEnded(end) }
            }
            return call
        }

        func body(_ path: String) async throws -> String {
            let record = try await begin(path).result()
            if let error = record.error { throw TestFailure("\(path): \(error)") }
            return record.body
        }

        func count(_ line: String) -> Int { server.output.split(separator: "\n").count { $0 == line } }

        func stop() async throws {
            let connections = connections
            try await loop.run { connections.pool = nil }
            loop.stop()
            try await server.stop()
        }
    }

    private static let silence = Duration.milliseconds(100)

    /// Its token may have expired, or another certificate may be in use, while it waited.
    @Test func `a request that may no longer be sent when its connection is there ends, too`() async throws {
        let peers = try await Peers()
        // The first one waits for the connection, the second one finds it.
        #expect(try await peers.begin("/x", .withhold).result().error?.kind == .withheld)
        #expect(try await peers.body("/y") == "1")
        #expect(try await peers.begin("/x", .withhold).result().error?.kind == .withheld)
        #expect(peers.count("1 GET /x") == 0)
        try await peers.stop()
    }

    @Test
    func `a PING before the first request after a silence finds a dead connection, and another takes the request`()
        async throws
    {
        let peers = try await Peers(HTTP2Liveness(probeAfter: Self.silence, probeWithin: .milliseconds(500)))
        #expect(try await peers.body("/x") == "1")
        // Time itself: the silence.
        try await Task.sleep(for: Self.silence * 2)
        #expect(try await peers.body("/deaf") == "1")
        #expect(peers.count("1 ping") == 1)
        // Time itself: the silence.
        try await Task.sleep(for: Self.silence * 2)
        #expect(try await peers.body("/y") == "2")
        #expect(peers.count("1 GET /y") == 0)
        try await peers.stop()
    }

    @Test func `a PING while a request waits finds a server that is gone without a word`() async throws {
        let peers = try await Peers(HTTP2Liveness(pingAfter: Self.silence, pongWithin: .milliseconds(500)))
        let alive = try await peers.begin("/hold")
        try await eventually("some PINGs are answered") { peers.count("1 ping") >= 3 }
        #expect(!alive.record.hasEnded)
        #expect(try await peers.body("/deaf") == "1")
        let record = try await alive.result()
        #expect(record.error?.kind == .connectionLost)
        #expect(record.error?.message == "the server does not answer a PING")
        #expect(try await peers.body("/x") == "2")
        try await peers.stop()
    }

    @Test func `names behind a wildcard do not fill the memory`() async throws {
        let loop = try EventLoop.start(name: "names")
        let origins = try await loop.run {
            let pool = HTTP2Pool(
                CarrierPool(options: PoolOptions(), loop: loop), buffers: UpstreamStreamPool(loop: loop))
            for number in 0..<5000 {
                let origin = Origin(scheme: .https, host: "a\(number).test", port: 443)
                _ = pool.origin(.init(origin: origin, isKnown: false))
            }
            return pool.origins.count
        }
        loop.stop()
        #expect((1...1000).contains(origins))
    }
}
