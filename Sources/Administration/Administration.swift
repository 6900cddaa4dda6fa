import HTTPServer
import Heimdallr
public import Logging
import Reactor
public import Reports
import Synchronization

/// The admin port and the admin socket. A separate event loop answers probes while the proxy is busy. Any thread.
public final class Administration: Sendable {
    /// Address of the admin port, with the actual port if the kernel chose it.
    public let address: String
    public let socketPath: String

    private let model: AdminModel
    private let servers: [HTTPServer]
    private let loop: EventLoop
    private let heartbeat: Task<Void, Never>
    private let portRoutes: PortRoutes
    private let stopping = Mutex<Task<Void, Never>?>(nil)

    private init(
        address: String, socketPath: String, model: AdminModel, servers: [HTTPServer], loop: EventLoop,
        heartbeat: Task<Void, Never>, portRoutes: PortRoutes
    ) {
        self.address = address
        self.socketPath = socketPath
        self.model = model
        self.servers = servers
        self.loop = loop
        self.heartbeat = heartbeat
        self.portRoutes = portRoutes
    }

    /// Listens, and returns when both listeners accept. Call this before the clients start, so that no event is missed.
    /// - Parameters:
    ///   - tokens: counters. The caller records token requests in them, the administration records events.
    /// - Throws: `AdministrationError`
    public static func start(
        _ settings: AdministrationSettings, sources: AdministrationSources, tokens: TokenMetrics, logger: Logger
    ) async throws(AdministrationError) -> Administration {
        let path = try socketPath(settings, logger)
        let front = settings.url.flatMap { Front(url: $0) }
        let origins = OriginPolicy(hosts: settings.hosts, front: front)
        let addresses = LoginAddresses(host: settings.host, origins: origins)
        let model = AdminModel(
            sources: sources, tokens: tokens, addresses: addresses, pendingLogins: settings.pendingLogins)
        let forms = FormTokens()
        let listeners = try AdminListeners(settings, socketPath: path)
        let port = listeners.port.address.port
        addresses.setPort(Int(port))
        watch(sources.clients, model)
        let gate = AdminGate(
            origins: origins, token: TokenGate(token: settings.token, forms: forms, logger: logger))
        let portRoutes = PortRoutes { PageRoutes.router(model, gate, logger) }
        let (servers, loop) = try await serve(
            listeners, port: portRoutes, command: CommandRoutes.router(model), shown: settings.shown, logger)
        model.watch(loop)
        return Administration(
            address: settings.shown(port: port), socketPath: listeners.command.address.host, model: model,
            servers: servers, loop: loop, heartbeat: heartbeat(model), portRoutes: portRoutes)
    }

    /// Checks whether `start` could listen, and changes nothing. An address in use is not an error.
    public static func check(_ settings: AdministrationSettings) throws(AdministrationError) {
        try AdminListeners.check(settings)
    }

    /// Starts a server for each listener, so that each listener has a separate connection limit.
    private static func serve(
        _ listeners: AdminListeners, port routes: PortRoutes, command: AdminRouter, shown: String, _ logger: Logger
    ) async throws(AdministrationError) -> ([HTTPServer], EventLoop) {
        let acceptFailed: @Sendable (SystemError) -> Void = { error in
            logger.error("a connection could not be accepted", metadata: ["listener": "admin", "reason": "\(error)"])
        }
        let loop: EventLoop
        do {
            loop = try EventLoop.start(name: "admin")
        } catch {
            listeners.close()
            throw .listen(address: shown, reason: "\(error)")
        }
        // From here on each server closes its socket.
        do {
            let port = try await HTTPServer(
                [listeners.port], on: loop, settings: .administration, maxBodyBytes: AdminListeners.maxBodyBytes,
                acceptFailed: acceptFailed
            ) { await note($0, at: "port", logger) { await routes.router.respond(to: $0) } }
            let socket = try await HTTPServer(
                [listeners.command], on: loop, settings: .administration, maxBodyBytes: AdminListeners.maxBodyBytes,
                admits: AdminListeners.admits, acceptFailed: acceptFailed
            ) { await note($0, at: "socket", logger) { await command.respond(to: $0) } }
            return ([port, socket], loop)
        } catch {
            loop.stop()
            throw .listen(address: shown, reason: "\(error)")
        }
    }

    /// Paths of frequent requests, which are logged at a lower level.
    private static let probes = ["/livez", "/healthz", "/readyz", "/metrics"]

    /// Answers a request and logs its path. The query is not logged, because it may hold an authorization code.
    private static func note(
        _ request: ServerRequest, at listener: String, _ logger: Logger,
        _ answer: (ServerRequest) async -> ServerResponse
    ) async -> ServerResponse {
        let response = await answer(request)
        logger.log(
            level: probes.contains(request.path) ? .trace : .debug, "admin request",
            metadata: [
                "listener": "\(listener)", "method": "\(request.method)", "path": "\(request.path)",
                "status": .stringConvertible(response.status),
            ])
        return response
    }

    /// Returns the way to sign in to `client`, for logs and answers.
    public func signIn(_ client: String) -> SignInHint { model.signIn(of: client).hint }

    /// Changes to another configuration. Call this before its new clients start, so that no event is missed.
    public func change(to sources: AdministrationSources) {
        let known = Set(model.sources.clients.map { ObjectIdentifier($0.heimdallr) })
        model.replace(sources)
        portRoutes.makeAgain()
        Self.watch(sources.clients.filter { !known.contains(ObjectIdentifier($0.heimdallr)) }, model)
    }

    /// Makes the readiness probe fail from now on.
    public func beginDraining() { model.beginDraining() }

    /// Closes both listeners and removes the socket's file. Answers have a second to end. May be called more than once.
    public func stop() async {
        model.feed.finish()
        model.logins.close()
        heartbeat.cancel()
        let work = stopping.withLock { stopping in
            let work =
                stopping
                ?? Task { [servers, loop, heartbeat] in
                    // The task may ask the proxy's loops, which stop after this.
                    await heartbeat.value
                    await withDiscardingTaskGroup { group in
                        for server in servers { group.addTask { await server.drain(within: .seconds(1)) } }
                    }
                    loop.stop()
                }
            stopping = work
            return work
        }
        await work.value
    }

    /// Counts the clients' events and sends them to `/events`.
    private static func watch(_ clients: [AdministrationSources.Client], _ model: AdminModel) {
        for client in clients {
            client.heimdallr.observe { [weak model] event in
                guard let model else { return }
                model.tokens.record(event)
                model.feed.send(event, model.signIn(of: event.client))
            }
        }
    }

    /// Starts a task that sends the last requests to all readers of `/events` once a second, and a comment every 15
    /// seconds.
    private static func heartbeat(_ model: AdminModel) -> Task<Void, Never> {
        Task {
            var news = RequestNews()
            var seconds = 0
            while (try? await Task.sleep(for: .seconds(1))) != nil {
                await news.send(model)
                seconds += 1
                if seconds.isMultiple(of: 15) { model.feed.beat() }
            }
        }
    }

    /// Returns the configured path or the default path. Logs a warning about an unsafe or unusual folder.
    private static func socketPath(
        _ settings: AdministrationSettings, _ logger: Logger
    ) throws(AdministrationError) -> String {
        if let path = settings.socket {
            if let fault = AdminSocket.sharedFolderFault(folderOf: path) {
                logger.warning(
                    "the command line will not use the admin socket: its folder must be writable for this user only",
                    metadata: ["socket": "\(path)", "reason": "\(fault)"])
            }
            return path
        }
        let (path, reason) = try AdminSocket.prepareDefault(
            port: settings.port, runtimeDirectory: settings.runtimeDirectory)
        if let reason {
            logger.warning(
                "the admin socket is not in its usual folder; the command line finds it",
                metadata: ["socket": "\(path)", "reason": "\(reason)"])
        }
        return path
    }
}

/// Routes of the admin port. They include the paths of redirect URIs, so they change with the configuration.
private final class PortRoutes: Sendable {
    private let make: @Sendable () -> AdminRouter
    private let current: Mutex<AdminRouter>

    init(_ make: @escaping @Sendable () -> AdminRouter) {
        self.make = make
        current = Mutex(make())
    }

    var router: AdminRouter { current.withLock { $0 } }

    func makeAgain() {
        let router = make()
        current.withLock { $0 = router }
    }
}
