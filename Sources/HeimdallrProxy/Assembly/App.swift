import Administration
import Configuration
import CurlTransport
import Heimdallr
import Logging
import Proxy
import Reactor

/// Makes all objects of the process and connects them.
struct App {
    let configuration: Configuration
    let log: LogSetUp
    /// Reads the configuration again.
    let read: @Sendable () throws(ConfigurationError) -> ReadConfiguration
    /// Stops the process, as SIGTERM does.
    var quit: @Sendable () -> Void = {}
    /// The service manager that started the process, and its sockets.
    var manager = ServiceManager()
    /// Detects changes of the file from which `configuration` was read.
    var freshness: ConfigurationFreshness?
    /// Whether this is the proxy of `exec --serve`. No other process looks for its trust files.
    var isForOneProgram = false

    private var logger: Logger { log.logger }

    /// Starts everything: clients fetch their tokens, and the listeners accept.
    func start() async throws -> RunningApp {
        let shared = try await SharedObjects(self)
        let assembled = try await shared.assemble(configuration, former: nil)
        await shared.use(assembled)
        let (secrets, tls, listeners) = (shared.secrets, shared.files.tls, shared.files.listeners)
        await shared.interception.prepareFiles(assembled.authorities.interception, configuration)
        let server: ProxyServer
        do {
            server = try await ProxyServer(
                configuration, clients: assembled.clients.byName, loops: shared.loops, observer: assembled.observer,
                users: assembled.users, credentials: CredentialSources { secrets.secret($0) },
                material: { tls[.init($0, extra: $1)] }, interception: assembled.authorities.interception,
                certificate: { listeners[.init($0)]?.context }, own: shared.registry.listeners, passed: manager.passed,
                placeholderKeys: shared.stores.placeholderKeys)
        } catch {
            await shared.interception.end()
            throw error
        }
        // Comes after the binding, because a start that can't bind must not replace another proxy's trust files.
        await shared.interception.use(assembled.authorities.interception, configuration)
        let administration: Administration?
        do {
            administration = try await AdministrationAssembly(
                shared: shared, configuration: configuration, clients: assembled.clients, server: server
            ).start(passed: manager.passed)
            try DescriptorShortage.check()
            // Comes last: a start that fails must not replace the stored authorities.
            try await assembled.authorities.save()
        } catch {
            await server.drain(within: .zero)
            await shared.interception.end()
            for loop in shared.loops { loop.stop() }
            throw error
        }
        for address in administration?.listenAddresses ?? [] { server.own.add(address) }
        shared.watch.signIns.set(administration)
        // Observers are added before the clients start, so that they see the first event.
        for client in assembled.clients {
            shared.watch.add(client)
            client.file?.start()
        }
        Task { [queue = shared.reloadQueue] in
            await StartInSteps.run(assembled.clients) { client in
                client.heimdallr.start()
                return !queue.isClosed
            } hasSettled: {
                $0.heimdallr.hasSettled
            }
        }
        logStart(server, administration)
        let running = RunningApp(
            shared: shared, server: server, administration: administration,
            current: .init(configuration: configuration, clients: assembled.clients))
        shared.reloadQueue.set(running)
        if !isForOneProgram { await running.serveEnclosures() }
        return running
    }

    private func logStart(_ server: ProxyServer, _ administration: Administration?) {
        let limit = ProxyServer.programLimit(configuration.proxy)
        if limit < configuration.proxy.maxConnections {
            logger.warning(
                "fewer clients at once than max_connections: raise the limit of file descriptors (ulimit -n)",
                metadata: [
                    "max_connections": .stringConvertible(configuration.proxy.maxConnections),
                    "clients": .stringConvertible(limit),
                ])
        }
        for address in server.addresses { logger.info("listening", metadata: ["address": "\(address)"]) }
        if let administration {
            logger.info(
                "administration",
                metadata: ["address": "\(administration.address)", "socket": "\(administration.socketPath)"])
        }
    }

    /// Time after which the memory that only the start needed is released.
    private static let settleTime = Duration.seconds(2)

    /// Runs until `stops` has an element, then lets requests finish. A second element ends the requests at once.
    /// - Returns: `false` if a refresh token could not be saved. The last lines of the log then name its client.
    @discardableResult
    func run(
        until stops: AsyncStream<Void>, reloading reloads: AsyncStream<Void>,
        onListening: (RunningApp) async throws -> Void
    ) async throws -> Bool {
        let running = try await start()
        do { try await onListening(running) } catch {
            await running.stop()
            throw error
        }
        manager.notifyReady(at: running.addresses)
        let watchdog = manager.watch { [server = running.server] in await server.pulse() }
        let settling = Task {
            try await Task.sleep(for: Self.settleTime)
            StartPages.release()
        }
        let reloading = Task { for await _ in reloads { _ = await running.shared.reloadQueue.reload() } }
        // The stream keeps signals that came during the start.
        for await _ in stops { break }
        manager.notifyStopping()
        settling.cancel()
        reloading.cancel()
        let again = Task {
            for await _ in stops {
                running.server.end()
                running.shared.traces.abandon()
                for client in running.clients { client.heimdallr.shutdown() }
            }
        }
        let proxy = running.configuration.proxy
        let losses = await running.stop(drainTimeout: proxy.drainTimeout, delay: proxy.drainDelay)
        again.cancel()
        watchdog?.cancel()
        logger.info("stopped")
        for loss in losses { logger.error("the newest refresh token is lost: it could not be saved", metadata: loss) }
        return losses.isEmpty
    }
}
