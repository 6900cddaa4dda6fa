@testable import CurlTransport
import Reactor
import Synchronization
import TestSupport
import Testing

@Suite("libcurl's memory is there for connections, and goes when they have long ended", .timeLimit(.minutes(1)))
struct CurlEnginesTests {
    private static let reporting = """
        ssl_protocols TLSv1.3;
        location / { default_type text/plain; return 200 "resumed: $ssl_session_reused\\n"; }
        """

    /// Returns the numbers of engines that clients share, and of scopes.
    private func counts(_ loop: EventLoop) async throws -> [Int] {
        try await loop.run { [CurlEngines.of(loop).sharedCount, CurlEngines.of(loop).recentCount] }
    }

    private func send(_ client: BufferedClient, _ origin: Origin) async throws -> String {
        try await String(decoding: client.send(Request(origin)).body, as: UTF8.self)
    }

    @Test func `a client that has sent nothing has nothing of libcurl`() async throws {
        let loop = try EventLoop.start(name: "engines")
        defer { loop.stop() }
        let clients = (0..<100).map { _ in BufferedClient(options: PoolOptions(), loop: loop) }
        #expect(try await counts(loop) == [0, 0])
        withExtendedLifetime(clients) {}
    }

    @Test func `a thousand clients share one engine, and the sessions of 32 of them stay`() async throws {
        let origin = try RecordingOrigin()
        let loop = try EventLoop.start(name: "engines")
        defer { loop.stop() }
        let clients = (0..<1000).map { _ in BufferedClient(options: PoolOptions(), loop: loop) }
        for client in clients { _ = try await client.send(Request(origin)) }
        #expect(try await counts(loop) == [1, CurlEngines.mostResting])
        // A client whose scope has gone gets another one.
        #expect(try await clients[0].send(Request(origin)).status == 200)
        #expect(try await counts(loop) == [1, CurlEngines.mostResting])
    }

    @Test func `clients with other trust anchors have other engines`() async throws {
        let nginx = try await Nginx.secure()
        let loop = try EventLoop.start(name: "engines")
        defer { loop.stop() }
        var trusting = PoolOptions()
        trusting.trustAnchors = .only(file: nginx.authority.certificateFile)
        let trust = BufferedClient(options: trusting, loop: loop)
        let stranger = BufferedClient(options: PoolOptions(), loop: loop)
        for _ in 0..<2 {
            #expect(try await trust.send(Request(.secure(nginx.httpsPort))).status == 200)
            await #expect(throws: BufferedClient.Failure.self) {
                try await stranger.send(Request(.secure(nginx.httpsPort)))
            }
        }
        #expect(try await counts(loop) == [2, 2])
    }

    @Test func `a call resumes TLS of the same client's last call, never of another client's`() async throws {
        let nginx = try await Nginx.secure(locations: Self.reporting)
        let loop = try EventLoop.start(name: "engines")
        defer { loop.stop() }
        var options = PoolOptions()
        options.trustAnchors = .only(file: nginx.authority.certificateFile)
        let (one, two) = (BufferedClient(options: options, loop: loop), BufferedClient(options: options, loop: loop))
        let origin = Origin.secure(nginx.httpsPort)
        #expect(try await send(one, origin) == "resumed: .\n")
        #expect(try await send(one, origin) == "resumed: r\n")
        #expect(try await send(two, origin) == "resumed: .\n")
        #expect(try await send(one, origin) == "resumed: r\n")
        #expect(try await counts(loop) == [1, 2])
    }

    @Test func `new TLS files end the sessions of those before`() async throws {
        let nginx = try await Nginx.secure(locations: Self.reporting)
        let file = nginx.authority.certificateFile
        let material = TLSMaterial(.init(anchors: file))
        let calls = try Calls {
            $0.trustAnchors = .only(file: file)
            $0.material = material
        }
        let origin = Origin.secure(nginx.httpsPort)
        #expect(try await send(calls.client, origin) == "resumed: .\n")
        #expect(try await send(calls.client, origin) == "resumed: r\n")
        material.replace(certificate: nil, key: nil, anchors: nil, certificateID: 0)
        #expect(try await send(calls.client, origin) == "resumed: .\n")
    }

    @Test func `after a time without a call, neither engine nor session is left`() async throws {
        let nginx = try await Nginx.secure(locations: Self.reporting)
        let file = nginx.authority.certificateFile
        let calls = try Calls { $0.trustAnchors = .only(file: file) }
        let (loop, origin) = (calls.loop, Origin.secure(nginx.httpsPort))
        try await loop.run { CurlEngines.of(loop).restTime = .milliseconds(20) }
        #expect(try await send(calls.client, origin) == "resumed: .\n")
        try await eventually("nothing is left") { try await counts(loop) == [0, 0] }
        #expect(try await send(calls.client, origin) == "resumed: .\n")
    }

    @Test func `a client and a pool that have gone leave no engine`() async throws {
        let origin = try RecordingOrigin()
        let loop = try EventLoop.start(name: "engines")
        defer { loop.stop() }
        for _ in 0..<3 {
            let client = BufferedClient(options: PoolOptions(), loop: loop)
            #expect(try await client.send(Request(origin)).status == 200)
        }
        try await eventually("nothing is left of the clients") { try await counts(loop) == [0, 0] }
        let port = origin.port
        let user = CarrierUser(on: loop, releasesAtOnce: false)
        let pool = try await loop.run {
            let pool = CarrierPool(options: PoolOptions(), loop: loop)
            _ = try pool.connect(to: .plain(port), for: user, user.request)
            return Held(LoopBound(pool, on: loop))
        }
        try await user.arrived()
        #expect(try await counts(loop) == [0, 1])
        try await user.release()
        pool.release()
        try await eventually("nothing is left of the pool") { try await counts(loop) == [0, 0] }
    }

    /// A value until its release.
    private final class Held<Value: Sendable>: Sendable {
        private let value: Mutex<Value?>

        init(_ value: Value) { self.value = Mutex(value) }

        func release() { value.withLock { $0 = nil } }
    }

    @Test func `a pool's engine stays as long as a connection, and goes after it`() async throws {
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop { $0.maxConnectionAge = .milliseconds(300) }
        let loop = carriers.loop
        try await loop.run { CurlEngines.of(loop).restTime = .milliseconds(20) }
        let user = try await carriers.connected(.plain(origin.port))
        try await eventually("the scope is at rest") { try await counts(loop)[1] == 0 }
        try await user.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try await user.answer().hasPrefix("HTTP/1.1 200 "))
        try await user.release()
        try await eventually("the connection is closed") { try await carriers.counts.open == 0 }
        try await eventually("nothing is left") { try await counts(loop)[1] == 0 }
        #expect(try await carriers.exchange(.plain(origin.port)).record.text.hasPrefix("HTTP/1.1 200 "))
    }
}
