import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Reactor

@Suite("listening sockets that several loops or processes have", .timeLimit(.minutes(1)))
struct SharedListenerTests {
    private static let loopback = SocketAddress(.ipv4(address: 0x7f00_0001, port: 0))

    private final class Counter: Sendable {
        let loop: EventLoop
        let accepted = Atomic<Int>(0)
        private let acceptor = Mutex<LoopBound<Acceptor>?>(nil)

        init(_ socket: ListeningSocket) async throws {
            let loop = try EventLoop.start(name: "counter")
            self.loop = loop
            let made = try await loop.run { [self] in
                let acceptor = try Acceptor(
                    socket, on: loop,
                    accepted: { socket in
                        // A busy loop leaves the next connection to others.
                        usleep(500)
                        // Before its client sees the end.
                        _ = self.accepted.wrappingAdd(1, ordering: .relaxed)
                        socket.close()
                    }, failed: { _ in })
                return LoopBound(acceptor, on: loop)
            }
            acceptor.withLock { $0 = made }
        }

        func finish() async throws {
            guard let acceptor = acceptor.withLock({ $0 }) else { return }
            try await loop.run { acceptor.value.finish() }
        }

        var count: Int { accepted.load(ordering: .relaxed) }
    }

    @Test func `a passed socket's connections spread over the loops, and it outlives them`() async throws {
        let mine = try ListeningSocket.open(Self.loopback, sharesPort: false)
        let passed = try PassedSocket(mine.descriptor, name: "proxy")
        #expect(passed.address == mine.address)
        var counters: [Counter] = []
        for _ in 0..<3 { counters.append(try await Counter(try passed.listeningSocket())) }
        let port = mine.address.port
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<300 {
                group.addTask {
                    let client = try await RawClient.connect(port: port)
                    _ = try await client.readToEnd()
                }
            }
            try await group.waitForAll()
        }
        #expect(counters.reduce(0) { $0 + $1.count } == 300)
        #expect(counters.allSatisfy { $0.count >= 20 }, "\(counters.map(\.count))")
        for counter in counters {
            try await counter.finish()
            counter.loop.stop()
        }
        // No loop accepts, and no connection is refused. The next loop accepts.
        let waiting = try await RawClient.connect(port: mine.address.port)
        let next = try await Counter(try passed.listeningSocket())
        _ = try await waiting.readToEnd()
        #expect(next.count == 1)
        next.loop.stop()
        mine.close()
    }

    @Test func `a connection in the queue when a listener closes is still accepted`() async throws {
        let socket = try ListeningSocket.open(Self.loopback, sharesPort: false)
        let counter = try await Counter(socket)
        // The loop is busy while they come.
        let (busy, free) = (Gate(), Gate())
        counter.loop.execute {
            busy.open()
            free.wait()
        }
        try await offPool { busy.wait() }
        var clients: [RawClient] = []
        for _ in 0..<100 { clients.append(try await RawClient.connect(port: socket.address.port)) }
        async let finished: Void = counter.finish()
        free.open()
        try await finished
        #expect(counter.count == 100)
        for client in clients { #expect(try await client.readToEnd().isEmpty) }
        counter.loop.stop()
    }

    private final class Tally: Sendable {
        let accepted = Atomic<Int>(0)
        let turns = Atomic<Int>(0)
    }

    @Test(arguments: [false, true])
    func `clearing O_NONBLOCK of a passed socket blocks no loop`(isUnix: Bool) async throws {
        let folder = try TemporaryDirectory()
        let mine =
            isUnix
            ? try ListeningSocket.open(path: "\(folder.path)/x.sock", mode: 0o600)
            : try ListeningSocket.open(Self.loopback, sharesPort: false)
        defer { mine.close() }
        let descriptor = mine.descriptor
        let passed = try PassedSocket(descriptor, name: "proxy")
        let loop = try EventLoop.start(name: "passed")
        let tally = Tally()
        @Sendable func clear() {
            #expect(fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK) == 0)
        }
        clear()
        let socket = try passed.listeningSocket()
        let acceptor = try await loop.run {
            LoopBound(
                try Acceptor(
                    socket, on: loop,
                    accepted: { socket in
                        socket.close()
                        // Also within one look at the queue.
                        clear()
                        _ = tally.accepted.wrappingAdd(1, ordering: .relaxed)
                    }, failed: { Issue.record("\($0)") }), on: loop)
        }
        for turn in 1...3 {
            let client = Glibc.socket(mine.address.family, Int32(SOCK_STREAM.rawValue), 0)
            defer { Glibc.close(client) }
            #expect(try unsafe mine.address.withKernelForm { unsafe Glibc.connect(client, $0, $1) } == 0)
            try await eventually("it is accepted") { tally.accepted.load(ordering: .relaxed) == turn }
            loop.execute { _ = tally.turns.wrappingAdd(1, ordering: .relaxed) }
            try await eventually("the loop goes on") { tally.turns.load(ordering: .relaxed) == turn }
        }
        try await loop.run { acceptor.value.close() }
        loop.stop()
    }

    @Test func `a stranger's lock on the folder holds nobody who closes, and the file goes all the same`() async throws
    {
        let folder = try TemporaryDirectory()
        let path = "\(folder.path)/x.sock"
        let socket = try ListeningSocket.open(path: path, mode: 0o600)
        let stranger = unsafe Glibc.open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        #expect(flock(stranger, LOCK_EX) == 0)
        let begin = ContinuousClock.now
        socket.close()
        #expect(begin.duration(to: .now) < .milliseconds(500))
        // No connection waits in a queue without an accepting loop.
        let client = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let address = SocketAddress(.unix(path: path))
        #expect(try unsafe address.withKernelForm { unsafe Glibc.connect(client, $0, $1) } != 0)
        Glibc.close(client)
        try await eventually("it is gone") { UnixSocketFile.mode(path) == nil }
        Glibc.close(stranger)
    }
}
