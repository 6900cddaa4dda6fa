import Hummingbird
import Logging
import NIOCore
public import ServiceLifecycle

/// A demonstration that needs nobody else: an OAuth authorization server with short-lived tokens, and an API that
/// answers only to a request that carries one and then says what it received.
///
/// Both listen on loopback, on ports that the kernel chooses, with credentials that are new in every process. SwiftNIO
/// and its threads start with the first `start()`, not before. Safe to use from any thread.
public final class Playground: Service {
    /// Where to reach the authorization server, without a slash at its end: `http://127.0.0.1:PORT`. Tokens come from
    /// `/token` (RFC 6749), `/revoke` takes them back (RFC 7009).
    public let authorizationServer: String
    /// Where to reach the API: `127.0.0.1:PORT`. Every path of it answers.
    public let apiAuthority: String
    /// Who may ask for tokens.
    public let credentials: PlaygroundCredentials

    private let servers: ServiceGroup
    private let serving: Task<Void, any Error>

    private init(
        authorizationServer: String, apiAuthority: String, credentials: PlaygroundCredentials, servers: ServiceGroup,
        serving: Task<Void, any Error>
    ) {
        self.authorizationServer = authorizationServer
        self.apiAuthority = apiAuthority
        self.credentials = credentials
        self.servers = servers
        self.serving = serving
    }

    /// Starts both servers and returns once they accept connections.
    /// - Parameters:
    ///   - credentials: who may ask for tokens.
    ///   - tokenLifetime: how long an access token is good for, in whole seconds; refresh tokens live for an hour.
    /// - Throws: what the system said when it gave no port.
    public static func start(
        credentials: PlaygroundCredentials = PlaygroundCredentials(), tokenLifetime: Duration = .seconds(20)
    ) async throws -> Playground {
        let office = TokenOffice(AuthorizationServer(credentials: credentials, tokenLifetime: tokenLifetime))
        let (ports, started) = AsyncThrowingStream<(Part, Int), any Error>.makeStream()
        let announce: @Sendable (Part, any Channel) -> Void = { part, channel in
            if let port = channel.localAddress?.port { started.yield((part, port)) }
        }
        let servers = ServiceGroup(configuration: serviceConfiguration(office: office, announce: announce))
        let serving = Task {
            do {
                try await servers.run()
                started.finish()
            } catch {
                started.finish(throwing: error)
                throw error
            }
        }

        var known: [Part: Int] = [:]
        for try await (part, port) in ports {
            known[part] = port
            guard let authorizationPort = known[.authorizationServer], let apiPort = known[.api] else { continue }
            return Playground(
                authorizationServer: "http://127.0.0.1:\(authorizationPort)", apiAuthority: "127.0.0.1:\(apiPort)",
                credentials: credentials, servers: servers, serving: serving)
        }
        throw PlaygroundError.stoppedWhileStarting
    }

    /// Returns after `stop()`, after the graceful shutdown of the service group around it, or when its task is
    /// cancelled; the servers run from `start()` on, whether or not this is called.
    public func run() async throws {
        let servers = self.servers
        try await withTaskCancellationOrGracefulShutdownHandler {
            try await serving.value
        } onCancelOrGracefulShutdown: {
            Task { await servers.triggerGracefulShutdown() }
        }
    }

    /// Closes both listeners, lets requests finish for a second, and returns. May be called more than once.
    public func stop() async {
        await servers.triggerGracefulShutdown()
        _ = await serving.result
    }

    private static func serviceConfiguration(
        office: TokenOffice, announce: @escaping @Sendable (Part, any Channel) -> Void
    ) -> ServiceGroupConfiguration {
        // The library below reports every start at `info`; here only what goes wrong is of interest.
        var logger = Logger(label: "playground")
        logger.logLevel = .warning
        let authorizationServer = Application(
            responder: TokenEndpoint.router(office: office).buildResponder(), configuration: loopback,
            onServerRunning: { announce(.authorizationServer, $0) }, logger: logger)
        let api = Application(
            responder: ProtectedAPI(office: office), configuration: loopback,
            onServerRunning: { announce(.api, $0) }, logger: logger)
        var configuration = ServiceGroupConfiguration(services: [authorizationServer, api], logger: logger)
        // Requests here take no time; whoever holds a connection longer than this is cut off.
        configuration.maximumGracefulShutdownDuration = .seconds(1)
        return configuration
    }

    private enum Part { case authorizationServer, api }

    private static let loopback = ApplicationConfiguration(
        address: .hostname("127.0.0.1", port: 0), serverName: "heimdallr-playground", reuseAddress: false)
}

/// What keeps the playground from starting.
public enum PlaygroundError: Error, CustomStringConvertible {
    /// The servers ended before both of them listened.
    case stoppedWhileStarting

    public var description: String {
        switch self {
        case .stoppedWhileStarting: "The playground's servers stopped before they listened."
        }
    }
}
