import Heimdallr
import Hummingbird
import HummingbirdCore
public import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// The admin port and the admin socket. SwiftNIO and its threads start with `start`, not before. Any thread.
public final class Administration: Sendable {
    /// Where the port listens, with the number the kernel chose.
    public let address: String
    public let socketPath: String

    private let office: Office
    private let servers: ServiceGroup
    private let serving: Task<Void, any Error>
    private let helpers: [Task<Void, Never>]
    private let socketIdentity: UInt64?

    private init(
        address: String, socketPath: String, office: Office, servers: ServiceGroup, serving: Task<Void, any Error>,
        helpers: [Task<Void, Never>]
    ) {
        self.address = address
        self.socketPath = socketPath
        self.office = office
        self.servers = servers
        self.serving = serving
        self.helpers = helpers
        socketIdentity = AdminSocket.identity(socketPath)
    }

    /// Listens, and returns once both listeners accept. To be called before the clients are started: what happens to
    /// them is counted from here on.
    /// - Parameters:
    ///   - tokens: told of each token request by whoever made the clients; events are added here.
    ///   - logger: for what goes wrong inside.
    /// - Throws: `AdministrationError`
    public static func start(
        _ settings: AdministrationSettings, sources: AdministrationSources, tokens: TokenMetrics, logger: Logger
    ) async throws(AdministrationError) -> Administration {
        let path = try socketPath(settings, logger)
        // The process's own, which is never shut down: a connection's last work may come after its server is gone.
        let group = MultiThreadedEventLoopGroup.singleton
        let admission = Admission(hosts: settings.hosts)
        let addresses = LoginAddresses(host: settings.host, admission: admission)
        let office = Office(sources: sources, tokens: tokens, addresses: addresses)
        let forms: FormTokens
        do { forms = try FormTokens() } catch {
            throw .listen(address: "\(settings.host):\(settings.port)", reason: "the machine gives no random numbers")
        }
        let streams = sources.clients.map { $0.heimdallr.events() }
        do {
            try await makeRoom(for: path, group)
        } catch {
            // Where both are taken, who has the port is what one can do something about: the socket's name is made of it.
            if let taken = await portFault(settings, group) { throw taken }
            throw error
        }
        let page = Part(
            name: settings.shown,
            isSocket: false, address: .hostname(settings.host, port: Int(settings.port)),
            router: PageRoutes.router(
                office, admission: admission, gate: TokenGate(token: settings.token, forms: forms)),
            handlers: { [pageRoom = ConnectionRoom()] in [ConnectionGuard(pageRoom)] })
        let users = allowedUsers
        let command = Part(
            name: path, isSocket: true, address: .unixDomainSocket(path: path),
            router: CommandRoutes.router(office),
            handlers: { [commandRoom = ConnectionRoom()] in [PeerGuard(allowed: users), ConnectionGuard(commandRoom)] })
        let (servers, serving, ports) = try await run([page, command], on: group, logger)
        do { try AdminSocket.restrict(path) } catch {
            await servers.triggerGracefulShutdown()
            _ = await serving.result
            AdminSocket.remove(path)
            throw .socket(path: path, reason: "its mode can't be set")
        }
        addresses.setPort(ports[0])
        let host = settings.host.contains(":") ? "[\(settings.host)]" : settings.host
        return Administration(
            address: "\(host):\(ports[0])", socketPath: path, office: office, servers: servers, serving: serving,
            helpers: helpers(office, streams))
    }

    /// How somebody signs `client` in, for logs and answers: what to do, to stand behind a colon, and the page's address;
    /// `nil` where it has to be a terminal.
    public func signIn(_ client: String) -> (advice: String, url: String?) {
        let signIn = office.signIn(of: client)
        return (signIn.advice, signIn.url)
    }

    /// Readiness says no from now on; everything still answers.
    public func beginDraining() { office.beginDraining() }

    /// Closes both listeners and removes the socket's file. May be called more than once.
    public func stop() async {
        office.feed.finish()
        office.logins.close()
        for helper in helpers { helper.cancel() }
        await servers.triggerGracefulShutdown()
        _ = await serving.result
        // Another process may have taken the path.
        if let socketIdentity, AdminSocket.identity(socketPath) == socketIdentity { AdminSocket.remove(socketPath) }
    }

    /// Events are counted and streamed; readers of the stream get a sign of life.
    private static func helpers(_ office: Office, _ streams: [AsyncStream<HeimdallrEvent>]) -> [Task<Void, Never>] {
        let watchers = streams.map { stream in
            Task {
                for await event in stream {
                    office.tokens.record(event)
                    office.feed.send(event, office.signIn(of: event.client))
                }
            }
        }
        let heart = Task {
            while (try? await Task.sleep(for: .seconds(15))) != nil { office.feed.beat() }
        }
        return watchers + [heart]
    }
}

// MARK: Listening

extension Administration {
    private struct Part: Sendable {
        let name: String
        let isSocket: Bool
        let address: BindAddress
        let router: RouterResponder<AdminContext>
        let handlers: @Sendable () -> [any RemovableChannelHandler]

        init(
            name: String, isSocket: Bool, address: BindAddress, router: Router<AdminContext>,
            handlers: @escaping @Sendable () -> [any RemovableChannelHandler]
        ) {
            self.name = name
            self.isSocket = isSocket
            self.address = address
            self.router = router.buildResponder()
            self.handlers = handlers
        }
    }

    /// Connections that wait to be accepted. Whoever connects and leaves again without a pause fills every queue, and a
    /// probe then waits behind all of it; a short one makes such a client wait for its own next connection instead
    /// (listen(2): its SYN is lost and sent again a second later), while what is queued is soon through.
    private static let backlog = 64
    /// Of the command line's socket: a full queue there fails a command at once (unix(7)).
    private static let localBacklog = 4096

    /// - Returns: the running servers, and the port of each part, 0 where it has none.
    private static func run(
        _ parts: [Part], on group: MultiThreadedEventLoopGroup, _ logger: Logger
    ) async throws(AdministrationError) -> (ServiceGroup, Task<Void, any Error>, [Int]) {
        let (events, started) = AsyncStream.makeStream(of: Started.self)
        let services = parts.enumerated().map { index, part in
            Listening(
                application: application(part, on: group, logger) { channel in
                    started.yield(.listening(index, port: channel.localAddress?.port ?? 0))
                }
            ) { reason in
                started.yield(.failed(index, reason: reason))
            }
        }
        var configuration = ServiceGroupConfiguration(services: services, logger: logger)
        // Answers take no time; whoever holds a connection longer than this is cut off.
        configuration.maximumGracefulShutdownDuration = .seconds(1)
        let servers = ServiceGroup(configuration: configuration)
        // Detached: a shutdown of the group around us is not yet ours, for we answer while the proxy drains.
        let serving = Task.detached {
            defer { started.finish() }
            try await servers.run()
        }
        var ports: [Int: Int] = [:]
        var failure: (part: Int, reason: String)?
        for await event in events {
            switch event {
            case .listening(let index, let port): ports[index] = port
            case .failed(let index, let reason): failure = failure ?? (index, reason)
            }
            if ports.count == parts.count || failure != nil { break }
        }
        if failure == nil, ports.count == parts.count {
            return (servers, serving, parts.indices.map { ports[$0] ?? 0 })
        }
        await servers.triggerGracefulShutdown()
        _ = await serving.result
        let (index, reason) = failure ?? (0, "the server stopped while it started")
        throw parts[index].isSocket
            ? .socket(path: parts[index].name, reason: reason) : .listen(address: parts[index].name, reason: reason)
    }

    private enum Started {
        case listening(Int, port: Int)
        case failed(Int, reason: String)
    }

    private static func application(
        _ part: Part, on group: MultiThreadedEventLoopGroup, _ logger: Logger,
        onListening: @escaping @Sendable (any Channel) -> Void
    ) -> Application<RouterResponder<AdminContext>> {
        // Longer heads are 431 or 400; nobody who belongs here sends them.
        let limits = HTTP1Channel.Configuration.DecoderConfiguration(
            maxHeaderFieldSize: 8 * 1024, maxHeaderListSize: 16 * 1024, maxHeaderFieldCount: 100)
        return Application(
            responder: part.router,
            server: .http1(
                configuration: .init(
                    additionalChannelHandlers: part.handlers(), httpDecoderConfiguration: limits)),
            configuration: ApplicationConfiguration(
                address: part.address, serverName: nil,
                backlog: part.isSocket ? localBacklog : backlog),
            onServerRunning: onListening, eventLoopGroupProvider: .shared(group), logger: logger)
    }

    /// As configured, or the default; what is odd about it is said.
    private static func socketPath(
        _ settings: AdministrationSettings, _ logger: Logger
    ) throws(AdministrationError) -> String {
        if let path = settings.socket {
            if let fault = AdminSocket.strangersFault(folderOf: path) {
                logger.warning(
                    "the command line will not use the admin socket: give it a folder that only its user may write to",
                    metadata: ["socket": "\(path)", "reason": "\(fault)"])
            }
            return path
        }
        let (path, reason) = try AdminSocket.prepareDefault(
            port: settings.port, runtimeDirectory: settings.runtimeDirectory)
        if let reason {
            logger.warning(
                "the admin socket is not in its usual place; the command line finds it all the same",
                metadata: ["socket": "\(path)", "reason": "\(reason)"])
        }
        return path
    }

    /// A socket's file that a dead process left is removed; a live one's is not.
    private static func makeRoom(
        for path: String, _ group: MultiThreadedEventLoopGroup
    ) async throws(AdministrationError) {
        guard path.utf8.count <= AdminSocket.maxPathLength else {
            throw .socket(path: path, reason: "its path has more than \(AdminSocket.maxPathLength) bytes")
        }
        switch AdminSocket.presence(path) {
        case .nothing: return
        case .somethingElse: throw .socket(path: path, reason: "there is a file of that name that is no socket")
        case .socket:
            let channel = try? await ClientBootstrap(group: group).connectTimeout(.seconds(2))
                .connect(unixDomainSocketPath: path).get()
            guard let channel else { return AdminSocket.remove(path) }
            try? await channel.close()
            throw .socket(path: path, reason: "another process listens on it")
        }
    }

    /// `nil`: the port can be had.
    private static func portFault(
        _ settings: AdministrationSettings, _ group: MultiThreadedEventLoopGroup
    ) async -> AdministrationError? {
        guard settings.port != 0 else { return nil }
        do {
            let channel = try await ServerBootstrap(group: group)
                .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
                .bind(host: settings.host, port: Int(settings.port)).get()
            try? await channel.close()
            return nil
        } catch {
            return .listen(address: settings.shown, reason: Listening.reason(error))
        }
    }

    /// Ours, and root's, who can be anybody anyway.
    private static var allowedUsers: [UInt32] { [AdminSocket.user, 0] }
}

/// Says why a listener could not be had, before the group around it ends.
private struct Listening: Service {
    let application: Application<RouterResponder<AdminContext>>
    let failed: @Sendable (String) -> Void

    init(application: Application<RouterResponder<AdminContext>>, failed: @escaping @Sendable (String) -> Void) {
        self.application = application
        self.failed = failed
    }

    func run() async throws {
        do {
            try await application.run()
        } catch {
            failed(Self.reason(error))
            throw error
        }
    }

    static func reason(_ error: any Error) -> String {
        if let error = error as? IOError { return SystemErrorText.text(of: error.errnoCode) }
        return "\(error)"
    }
}
