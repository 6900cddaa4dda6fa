import Administration
import Configuration
import CurlTransport
import Heimdallr
import HeimdallrCurl
import Logging
import Proxy
import Reactor

/// Makes all objects of the process and connects them.
struct App {
    let configuration: Configuration
    let logger: Logger
    let logWriter: LogWriter
    let logLevel: LogLevel
    /// Stops the process, as SIGTERM does.
    var quit: @Sendable () -> Void = {}
    /// The service manager that started the process, and its sockets.
    var manager = ServiceManager.none
    /// Of the file that `configuration` was read from.
    var freshness: ConfigurationFreshness?

    /// Starts everything: clients fetch their tokens, and the listeners accept.
    /// - Parameter read: reads the configuration again on request.
    /// - Throws: when a listener can't be opened, or a client can't work.
    func start(
        reading read: @escaping @Sendable () throws(ConfigurationError) -> ReadConfiguration = {
            () throws(ConfigurationError) in
            throw ConfigurationError(problems: [.init(file: "", message: "there is no file to read again")])
        }
    ) async throws -> RunningApp {
        let services = try await Services(self)
        let tracing = try services.traces.prepare(configuration)
        services.traces.use(tracing)
        let clients = try configuration.clients.map { settings throws(HeimdallrConfigurationError) in
            try services.client(settings, configuration, isHeld: false)
        }
        await services.primeSecrets()
        let stream = try await services.prepareAudit(configuration.audit)
        services.audit.install(stream)
        let server = try await ProxyServer(
            configuration, clients: clients.byName, loops: services.loops,
            observer: services.observer(configuration, audit: stream, tracing), users: services.users(configuration),
            credentials: CredentialSources { [secrets = services.secrets] in secrets.secret($0) },
            material: { [tls = services.tls] in tls.material($0, extra: $1) }, passed: manager.passed)
        let administration = try await administration(services, clients, server)
        services.watch.signIns.set(administration)
        services.watch.setHooks(configuration, on: services.loops[0])
        // Observers are registered before the first event.
        for client in clients { services.watch.add(client) }
        for client in clients { client.heimdallr.start() }
        report(server, administration)
        services.files.update()
        let running = RunningApp(
            services, server: server, administration: administration, read: read, configuration: configuration,
            clients: clients)
        services.reloadQueue.set(running)
        return running
    }

    /// - Throws: when it can't listen; then the server is stopped.
    private func administration(
        _ services: Services, _ clients: [KeptClient], _ server: ProxyServer
    ) async throws -> Administration? {
        var assembly = AdministrationAssembly(services, configuration, clients: clients, server: server)
        assembly.freshness = freshness
        do {
            let administration = try await assembly.start(passed: manager.passed)
            for address in administration?.listenAddresses ?? [] { server.own.add(address) }
            return administration
        } catch {
            await server.drain(within: .zero)
            for loop in services.loops { loop.stop() }
            throw error
        }
    }

    private func report(_ server: ProxyServer, _ administration: Administration?) {
        let limit = ProxyServer.clientLimit(configuration.proxy)
        if limit < configuration.proxy.maxConnections {
            logger.warning(
                "fewer clients at once than max_connections: raise the limit of file descriptors (ulimit -n)",
                metadata: [
                    "max_connections": .stringConvertible(configuration.proxy.maxConnections),
                    "clients": .stringConvertible(limit),
                ])
        }
        for address in server.addresses { logger.info("listening", metadata: ["address": "\(address)"]) }
        guard let administration else { return }
        logger.info(
            "administration",
            metadata: ["address": "\(administration.address)", "socket": "\(administration.socketPath)"])
    }

    /// Time after the start at which memory is released that only the start needed.
    private static let settleTime = Duration.seconds(2)

    /// Runs until `stops` has an element, then lets requests finish. A second signal ends them at once.
    /// - Parameters:
    ///   - reloads: has an element for each request to read the configuration again.
    ///   - onListening: called once the proxy accepts.
    func run(
        until stops: AsyncStream<Void>, reloading reloads: AsyncStream<Void>,
        reading read: @escaping @Sendable () throws(ConfigurationError) -> ReadConfiguration,
        onListening: (RunningApp) -> Void
    ) async throws {
        let running = try await start(reading: read)
        onListening(running)
        manager.isReady(at: running.addresses)
        let watchdog = manager.watch { [server = running.server] in await server.pulse() }
        let settling = Task {
            try await Task.sleep(for: Self.settleTime)
            StartPages.release()
        }
        let reloading = Task { for await _ in reloads { _ = await running.reload() } }
        running.services.reloadQueue.set(manager)
        // Signals that came during the start are waiting here.
        for await _ in stops { break }
        manager.isStopping()
        settling.cancel()
        reloading.cancel()
        let again = Task {
            for await _ in stops {
                running.server.end()
                running.services.traces.abandon()
                for client in running.clients { client.heimdallr.shutdown() }
            }
        }
        let proxy = running.configuration.proxy
        await running.stop(drainTimeout: proxy.drainTimeout, delay: proxy.drainDelay)
        again.cancel()
        watchdog?.cancel()
        logger.info("stopped")
    }
}
