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
        var loops: [EventLoop] = []
        for index in 0..<configuration.proxy.threads { loops.append(try EventLoop.start(name: "loop \(index)")) }
        let reloads = ReloadCounts()
        let secrets = SecretCache(configuration, counts: reloads, logger: logger)
        let tls = TLSFileCache(counts: reloads, logger: logger)
        await tls.add(configuration)
        let stores = try await StoreAssembly(
            settings: configuration.store, secrets: secrets, logger: logger,
            trustAnchors: configuration.trustAnchorsFile, longestTimeout: configuration.longestTimeout
        ).make()
        let store = stores.tokens
        let traces = Traces(secrets: secrets, tls: tls, logger: logger)
        let tracing = try traces.prepare(configuration)
        traces.use(tracing)
        let tokens = AdministrationAssembly.tokenMetrics(configuration)
        let clients = try configuration.clients.map { settings throws(HeimdallrConfigurationError) in
            try KeptClient(
                settings, configuration, secrets, tls, on: loops[0], store: store, isHeld: false,
                traces: traces,
                onTokenRequest: { [logger] report in
                    tokens?.record(report)
                    EventLog.write(report, to: logger)
                })
        }
        // One slow secret delays no other client's requests, and no probe.
        await waitBriefly(atMost: .seconds(1)) { await secrets.prime() }
        let watch = Watch(logger: logger, logWriter: logWriter)
        let audit = AuditTrail(logger: logger)
        let stream = try await BlockingWork.run { [configuration] in
            Result { () throws(AuditFault) in try audit.prepare(configuration.audit) }
        }.get()
        audit.install(stream)
        var observer = watch.observer(configuration, audit: stream)
        observer.spans = traces.spans(tracing)
        let server = try await ProxyServer(
            configuration, clients: clients.byName, loops: loops, observer: observer,
            users: configuration.proxy.users.mapValues { secrets.accessSecret($0) },
            credentials: CredentialSources { secrets.secret($0) },
            material: { [tls] in tls.material($0, extra: $1) }, passed: manager.passed)
        let reloadQueue = ReloadQueue()
        let assembly = AdministrationAssembly(
            configuration: configuration, clients: clients, server: server, failures: watch.failures, secrets: secrets,
            tls: tls, reloads: reloads, logLevel: LogLevelControl(level: logLevel, logger: logger),
            audit: { audit.counts }, spans: { traces.report }, reload: { await reloadQueue.reload() }, quit: quit,
            pendingLogins: stores.pendingLogins, freshness: freshness)
        let administration: Administration?
        do {
            administration = try await assembly.start(tokens: tokens, passed: manager.passed, logger: logger)
        } catch {
            await server.drain(within: .zero)
            for loop in loops { loop.stop() }
            throw error
        }
        if let administration {
            for address in administration.listenAddresses { server.own.add(address) }
        }
        watch.signIns.set(administration)
        watch.setHooks(configuration, on: loops[0])
        // Observers are registered before the first event.
        for client in clients { watch.add(client) }
        for client in clients { client.heimdallr.start() }
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
        if let administration {
            logger.info(
                "administration",
                metadata: ["address": "\(administration.address)", "socket": "\(administration.socketPath)"])
        }
        let files = FreshFiles(secrets: secrets, tls: tls, logger: logger)
        files.update()
        let running = RunningApp(
            server: server, loops: loops, administration: administration, watch: watch, audit: audit,
            traces: traces, files: files, store: store, tokens: tokens, reloads: reloads, logger: logger,
            logLevel: logLevel, read: read, configuration: configuration,
            clients: clients,
            reloadQueue: reloadQueue, quit: quit)
        reloadQueue.set(running)
        return running
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
        running.reloadQueue.set(manager)
        // Signals that came during the start are waiting here.
        for await _ in stops { break }
        manager.isStopping()
        settling.cancel()
        reloading.cancel()
        let again = Task {
            for await _ in stops {
                running.server.end()
                running.traces.abandon()
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
