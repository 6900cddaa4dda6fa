public import Reactor

/// An HTTP server for `async` handlers on one loop, based on `ServerLoop` like the proxy. Any thread may use it.
public final class HTTPServer: Sendable {
    public let loop: EventLoop
    /// Listening addresses, in the order of the sockets.
    public let addresses: [SocketAddress]
    private let bound: LoopBound<ServerLoop>

    /// Starts to accept on `sockets`. `drain` closes them.
    /// - Parameters:
    ///   - maxBodyBytes: limit of a body; a longer one gets 413. `nil`: bodies are read and counted, but not kept.
    ///   - admits: checks the caller on a Unix socket. A caller that is not admitted is disconnected before anything is
    ///     read.
    ///   - acceptFailed: called on the loop when accepting fails, at a limited rate.
    /// - Throws: `SystemError` when a socket can't be watched.
    public init(
        _ sockets: [ListeningSocket], on loop: EventLoop, settings: ServerSettings = ServerSettings(),
        maxBodyBytes: Int? = 64 * 1024, admits: (@Sendable (PeerCredentials?) -> Bool)? = nil,
        acceptFailed: @escaping @Sendable (SystemError) -> Void = { _ in },
        respond: @escaping AsyncExchange.Handler
    ) async throws {
        self.loop = loop
        addresses = sockets.map(\.address)
        bound = try await loop.run {
            let server = ServerLoop(settings, on: loop, admits: admits, acceptFailed: acceptFailed) { connection in
                AsyncExchange(connection, maxBodyBytes: maxBodyBytes, respond: respond)
            }
            for (index, socket) in sockets.enumerated() { try server.listen(socket, listener: index) }
            return LoopBound(server, on: loop)
        }
    }

    /// Stops accepting, waits up to `limit` for requests to finish, then closes the remaining connections.
    public func drain(within limit: Duration) async {
        let bound = bound
        let timer = Task {
            try await Task.sleep(for: limit)
            bound.loop.execute { bound.value.stop() }
        }
        await withCheckedContinuation { continuation in
            bound.loop.execute { bound.value.drain { continuation.resume() } }
        }
        timer.cancel()
    }
}
