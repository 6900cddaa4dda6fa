import CurlTransport
import Reactor
import Synchronization
import TestSupport
import Testing

@Suite("a dialer makes connections and gives them away", .timeLimit(.minutes(1)))
struct DialerTests {
    /// Outcomes of a dialer's attempts.
    private final class Attempts: Sendable {
        enum Outcome: Sendable, Equatable {
            case connected
            case failed(TransportError.Kind)
        }
        private let dialer: OnLoop<Dialer>
        private let state = Mutex<[Outcome]>([])
        /// Kept open until the end.
        private let sockets = Mutex<[LoopBound<StreamSocket>]>([])

        init(_ change: @Sendable @escaping (inout PoolOptions) -> Void = { _ in }) async throws {
            dialer = try await OnLoop(change) { Dialer(options: $0, loop: $1) }
        }

        var loop: EventLoop { dialer.loop }
        var outcomes: [Outcome] { state.withLock { $0 } }
        var descriptors: [LoopBound<StreamSocket>] { sockets.withLock { $0 } }

        /// - Parameter cancels: right after it was begun.
        func dial(_ host: String, _ port: UInt16, cancels: Bool = false) async throws {
            try await loop.run { [self] in
                let attempt = try dialer.value.value.dial(host: host, port: port) { result in
                    switch result {
                    case .success(let socket):
                        self.sockets.withLock { $0.append(LoopBound(socket, on: self.loop)) }
                        self.state.withLock { $0.append(.connected) }
                    case .failure(let error): self.state.withLock { $0.append(.failed(error.kind)) }
                    }
                }
                if cancels { attempt.cancel() }
            }
        }

        func outcome(_ host: String, _ port: UInt16) async throws -> Outcome {
            try await dial(host, port)
            return try await eventually("an outcome") { self.outcomes.first }
        }
    }

    @Test(arguments: ["127.0.0.1", "localhost"])
    func `what comes out is a connection that libcurl has let go of`(host: String) async throws {
        let far = try RawListener()
        let attempts = try await Attempts()
        #expect(try await attempts.outcome(host, far.port) == .connected)
        let end = try await far.accept()
        // Nothing has been sent, and it stays open.
        try await end.send("hello")
        let stream = try #require(attempts.descriptors.first)
        var text = ""
        while text.isEmpty {
            text = try await attempts.loop.run {
                var buffer = ByteBuffer()
                _ = stream.value.read(into: &buffer, limit: 100)
                return buffer.withBytes { bytes in String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self) }
            }
        }
        #expect(text == "hello")
    }

    @Test func `a refusal, a name that is none and an address that is not allowed are told apart`() async throws {
        #expect(try await Attempts().outcome("127.0.0.1", try freePort()) == .failed(.connectionRefused))
        #expect(try await Attempts().outcome("no-such-host.invalid", 80) == .failed(.nameNotResolved))
        #expect(
            try await Attempts { $0.addressPolicy.publicOnly = true }.outcome("127.0.0.1", 80)
                == .failed(.addressDenied))
        let far = try RawListener()
        let port = far.port
        let own = try await Attempts { $0.addressPolicy.own = [SocketAddress(.ipv4(address: 0x7f00_0001, port: port))] }
        #expect(try await own.outcome("localhost", port) == .failed(.loop))
        #expect(try await !far.isAwaited())
    }

    @Test func `an attempt ends by its timeout`() async throws {
        let deaf = try DeafPort()
        let attempts = try await Attempts { $0.connectTimeout = .milliseconds(200) }
        #expect(try await attempts.outcome("127.0.0.1", deaf.port) == .failed(.connectionTimedOut))
    }

    @Test func `a cancelled attempt says nothing more`() async throws {
        let deaf = try DeafPort()
        let attempts = try await Attempts { $0.connectTimeout = .milliseconds(200) }
        try await attempts.dial("127.0.0.1", deaf.port, cancels: true)
        try await attempts.dial("127.0.0.1", try freePort(), cancels: true)
        // Begun last, so its timeout passes after those of the others.
        #expect(try await attempts.outcome("127.0.0.1", deaf.port) == .failed(.connectionTimedOut))
        #expect(attempts.outcomes.count == 1)
    }

    @Test func `a hundred at once are made, some at a time`() async throws {
        let far = try RawListener()
        let attempts = try await Attempts { $0.maxConnections = 10 }
        for _ in 0..<100 { try await attempts.dial("127.0.0.1", far.port) }
        try await eventually("all of them") { attempts.outcomes.count == 100 }
        #expect(attempts.outcomes.allSatisfy { $0 == .connected })
    }
}
