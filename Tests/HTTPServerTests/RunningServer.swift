import HTTPServer
import Reactor
import TestSupport

/// Runs an `async` function as a server, on its own loop and port, during `body`.
func withServer(
    settings: ServerSettings = ServerSettings(), on given: EventLoop? = nil, maxBodyBytes: Int? = 64 * 1024,
    admits: (@Sendable (PeerCredentials?) -> Bool)? = nil,
    respond: @escaping @Sendable (ServerRequest) async -> ServerResponse,
    _ body: (UInt16) async throws -> Void
) async throws {
    let loop = try given ?? EventLoop.start(name: "test-server")
    let socket = try ListeningSocket.open(
        SocketAddress(.ipv4(address: 0x7F00_0001, port: 0)), sharesPort: false)
    let server = try await HTTPServer(
        [socket], on: loop, settings: settings, maxBodyBytes: maxBodyBytes, admits: admits, respond: respond)
    do {
        try await body(server.addresses[0].port)
    } catch {
        await server.drain(within: .zero)
        loop.stop()
        throw error
    }
    await server.drain(within: .zero)
    loop.stop()
}

/// Repeats the request in its answer.
@Sendable func echo(_ request: ServerRequest) async -> ServerResponse {
    .plain(200, "\(request.method) \(request.path) \(request.query ?? "-") \(request.body.count)")
}
