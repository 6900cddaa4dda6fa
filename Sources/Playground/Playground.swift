import HTTPServer
import Reactor
import Synchronization

/// A self-contained demonstration: an OAuth authorization server with short-lived tokens, and an API that requires a
/// token and reports the received request.
///
/// Both listen on loopback, on ports that the kernel chooses, with new credentials in every process. `start()` starts
/// their event loop and its thread. Safe to use from any thread.
public final class Playground: Sendable {
    /// Base URL of the authorization server, without a final slash: `http://127.0.0.1:PORT`, or with `[::1]` on a
    /// machine without IPv4. `/token` issues
    /// tokens (RFC 6749), `/revoke` revokes them (RFC 7009).
    public let authorizationServer: String
    /// Authority of the API: `127.0.0.1:PORT`. Every path answers.
    public let apiAuthority: String
    /// Credentials that the authorization server accepts.
    public let credentials: PlaygroundCredentials

    private let servers: [HTTPServer]
    private let loop: EventLoop
    /// Task of the first `stop()`. Further calls wait for this task.
    private let ending = Mutex<Task<Void, Never>?>(nil)

    private init(credentials: PlaygroundCredentials, authorizationServer: HTTPServer, api: HTTPServer) {
        self.authorizationServer = "http://\(authorizationServer.addresses[0])"
        apiAuthority = "\(api.addresses[0])"
        self.credentials = credentials
        servers = [authorizationServer, api]
        loop = api.loop
    }

    /// Starts both servers and returns once they accept connections.
    /// - Parameter credentials: accepted by the authorization server.
    /// - Throws: `SystemError` if no port is free or no thread can start.
    public static func start(credentials: PlaygroundCredentials = PlaygroundCredentials()) async throws -> Playground {
        let server = SharedAuthorizationServer(AuthorizationServer(credentials: credentials))
        let loop = try EventLoop.start(name: "playground")
        do {
            let router = TokenEndpoint.router(server: server)
            let authorizationServer = try await HTTPServer(
                [try freePort()], on: loop, maxBodyBytes: TokenEndpoint.maxBodyBytes
            ) { await router.respond($0) }
            let protected = ProtectedAPI(server: server, issuer: "http://\(authorizationServer.addresses[0])")
            let api = try await HTTPServer([try freePort()], on: loop, maxBodyBytes: nil) { protected.respond(to: $0) }
            return Playground(credentials: credentials, authorizationServer: authorizationServer, api: api)
        } catch {
            loop.stop()
            throw error
        }
    }

    private static func freePort() throws(SystemError) -> ListeningSocket {
        do throws(SystemError) {
            return try ListeningSocket.open(SocketAddress(.ipv4(address: 0x7F00_0001, port: 0)), sharesPort: false)
        } catch {
            // A machine without IPv4.
            guard error.isForeignAddress else { throw error }
            return try ListeningSocket.open(SocketAddress(.ipv6(high: 0, low: 1, scope: 0, port: 0)), sharesPort: false)
        }
    }

    /// Closes both listeners, lets requests finish for a second, and returns. May be called more than once.
    public func stop() async {
        let task = ending.withLock { ending in
            let task =
                ending
                ?? Task { [servers, loop] in
                    // Requests here take almost no time. A client whose request takes longer is cut off.
                    await withDiscardingTaskGroup { group in
                        for server in servers { group.addTask { await server.drain(within: .seconds(1)) } }
                    }
                    loop.stop()
                }
            ending = task
            return task
        }
        await task.value
    }
}
