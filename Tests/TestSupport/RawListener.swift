import Synchronization

/// A listener on 127.0.0.1 whose connections the test holds in its own hands: what came in is read and written by a
/// `RawClient`, which is as good at the other end of a connection.
public final class RawListener: Sendable {
    public let port: UInt16
    private let listener: Socket
    private let count = Mutex(0)

    /// - Throws: when no socket can be had.
    public init() throws { (listener, port) = try Socket.listener(backlog: 4096) }

    deinit { listener.shut() }

    /// How many connections were accepted.
    public var accepted: Int { count.withLock { $0 } }

    /// The next connection.
    public func accept(within limit: Duration = .seconds(20)) async throws -> RawClient {
        try await offPool { [self] in
            guard let socket = try listener.accept(before: .after(limit)) else {
                throw TestFailure("the listener was closed")
            }
            count.withLock { $0 += 1 }
            return RawClient(socket: socket)
        }
    }

    /// Whether a connection waits to be accepted, after a short time.
    public func isAwaited() async throws -> Bool {
        do {
            _ = try await accept(within: .milliseconds(200))
            return true
        } catch Socket.Failure.timedOut { return false }
    }
}
