import Synchronization

/// A listener on 127.0.0.1 whose connections the test serves itself, byte by byte. Each accepted connection is a
/// `RawClient`, which works at either end.
public final class RawListener: Sendable {
    public let port: UInt16
    private let listener: Socket
    private let count = Mutex(0)

    /// - Parameters:
    ///   - host: an address of 127.0.0.0/8.
    ///   - port: 0 lets the kernel choose.
    /// - Throws: when no socket can be opened.
    public init(host: UInt32 = 0x7f00_0001, port: UInt16 = 0) throws {
        (listener, self.port) = try Socket.listener(backlog: 4096, host: host, port: port)
    }

    deinit { listener.shut() }

    /// Number of accepted connections.
    public var accepted: Int { count.withLock { $0 } }

    /// Accepts the next connection.
    public func accept(within limit: Duration = .seconds(20)) async throws -> RawClient {
        try await offPool { [self] in
            guard let socket = try listener.accept(before: .after(limit)) else {
                throw TestFailure("the listener was closed")
            }
            count.withLock { $0 += 1 }
            return RawClient(socket: socket)
        }
    }

    /// Whether a client connects within a short time. Accepts its connection.
    public func isAwaited() async throws -> Bool {
        do {
            _ = try await accept(within: .milliseconds(200))
            return true
        } catch Socket.Failure.timedOut { return false }
    }
}
