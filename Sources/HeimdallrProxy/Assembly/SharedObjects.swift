import Administration
import Configuration
import CurlTransport
import FileSystem
import Heimdallr
import Logging
import Proxy
import Reactor
import Reports

/// The objects of the process that no reload replaces.
struct SharedObjects: Sendable {
    let app: App
    let loops: [EventLoop]
    let files: FreshFiles
    let stores: StoreAssembly.Assembled
    let watch: Watch
    let audit: AuditTrail
    let traces: Traces
    let interception: InterceptionKeeper
    let tokens: TokenMetrics?
    let reloads: ReloadCounts
    let reloadQueue = ReloadQueue()
    let registry = ClientRegistry()
    let repairs: Repairs

    var logger: Logger { app.log.logger }
    var secrets: SecretCache { files.secrets }

    /// Notes a token that a program outside got.
    var exported: @Sendable (ExportReport) -> Void {
        { [audit, logger] export in
            audit.write(AuditLine.bytes(export, .now))
            EventLog.write(export, to: logger)
        }
    }

    init(_ app: App) async throws {
        let configuration = app.configuration
        self.app = app
        let logger = app.log.logger
        loops = try (0..<configuration.proxy.threads).map { try EventLoop.start(name: "loop \($0)") }
        reloads = ReloadCounts()
        let repairs = Repairs()
        self.repairs = repairs
        let secrets = SecretCache(
            configuration, counts: reloads, client: { [registry] in registry[$0] }, logger: logger
        ) { repairs.changed($0) }
        let tls = PEMFiles<TLSMaterial>(.clientCertificate, counts: reloads, logger: logger) { repairs.changed($0) }
        let listeners = PEMFiles<ListenerCertificate>(.listenerCertificate, counts: reloads, logger: logger)
        files = FreshFiles(secrets: secrets, tls: tls, listeners: listeners, logger: logger)
        stores = try await StoreAssembly(configuration: configuration, secrets: secrets, logger: logger).make()
        watch = Watch(
            logger: logger, logWriter: app.log.writer, repairs: repairs, isForOneProgram: app.isForOneProgram)
        audit = AuditTrail(logger: logger)
        traces = Traces(secrets: secrets, tls: tls, logger: logger)
        interception = InterceptionKeeper(isForOneProgram: app.isForOneProgram, secrets: secrets, logger: logger)
        SystemAuthorities.shared.onOutcome { [reloads, interception] outcome in
            Self.note(outcome, reloads, logger)
            if case .taken = outcome { interception.systemAuthoritiesChanged() }
        }
        // Only the admin port shows these metrics.
        tokens = configuration.admin.map { _ in TokenMetrics(clients: configuration.grantTypes) }
    }

    private static func note(_ outcome: ReadingOutcome<String>, _ reloads: ReloadCounts, _ logger: Logger) {
        let bundle = SystemAuthorities.shared.bundle ?? ""
        switch outcome {
        case .taken(let isRecovery):
            reloads.record(.file(bundle), isGood: true)
            logger.info(
                isRecovery
                    ? "the system's authorities can be used again; new connections use them"
                    : "the system's authorities have changed; new connections use them", metadata: ["file": "\(bundle)"]
            )
        case .failed(let reason, hasValue: _, isNew: true):
            reloads.record(.file(bundle), isGood: false)
            logger.warning(
                "the system's authorities can't be used; the last good ones stay in use",
                metadata: ["file": "\(bundle)", "reason": "\(reason)"])
        case .unchanged, .failed: break
        }
    }

    /// The objects of one configuration. They are not in use yet.
    struct Assembled: Sendable {
        let configuration: Configuration
        let clients: [RunningClient]
        let observer: ProxyObserver
        let users: [String: any SecretProvider]
        let authorities: InterceptionKeeper.Prepared
        fileprivate let audit: AuditStream?
        fileprivate let tracing: Traces.Plan
    }

    /// Makes the objects of a configuration, at the start and at a reload. After a fault, the former objects stay.
    /// - Parameter former: the running objects, whose unchanged clients stay; `nil` at the start.
    func assemble(_ configuration: Configuration, former: RunningApp.Current?) async throws -> Assembled {
        secrets.change(to: configuration)
        await files.tls.add(configuration.peerFiles)
        // A listener without a certificate can serve nobody.
        let faults = await files.listeners.add(configuration.listenerFiles, ifGood: true)
        guard faults.isEmpty else { throw ConfigurationError(problems: faults.map(\.problem)) }
        let clients = try await clients(configuration, former)
        // The wait is short, because a slow secret must not delay other clients' requests or a probe.
        await waitBriefly(atMost: .seconds(1)) { [secrets] in await secrets.prime() }
        let tracing = try traces.prepare(configuration)
        let stream: AuditStream?
        do { stream = try await BlockingWork.run { [audit] in try audit.prepare(configuration.audit) } } catch {
            traces.discard(tracing)
            throw error
        }
        let authorities: InterceptionKeeper.Prepared
        do { authorities = try await interception.prepare(configuration) } catch {
            traces.discard(tracing)
            await BlockingWork.run { [audit] in audit.discard(stream) }
            throw error
        }
        let users = configuration.proxy.users.mapValues { secrets.accessSecret($0) }
        var observer = watch.observer(configuration, audit: stream)
        observer.spans = traces.spans(tracing)
        return Assembled(
            configuration: configuration, clients: clients, observer: observer, users: users,
            authorities: authorities, audit: stream, tracing: tracing)
    }

    /// Number of clients after which other tasks get their turn.
    private static let clientStride = 32

    private func clients(_ configuration: Configuration, _ former: RunningApp.Current?) async throws -> [RunningClient]
    {
        let named = Dictionary((former?.clients ?? []).map { ($0.settings.name, $0) }) { first, _ in first }
        var clients: [RunningClient] = []
        for settings in configuration.clients {
            if clients.count % Self.clientStride == 0 { await Task.yield() }
            let namesake = named[settings.name]
            if let namesake, namesake.isGood(for: settings, configuration) {
                clients.append(namesake)
                continue
            }
            let isHeld = namesake != nil || former?.removedSettings[settings.name] != nil
            do throws(HeimdallrConfigurationError) {
                clients.append(try RunningClient(settings, configuration, self, isHeld: isHeld))
            } catch {
                throw ConfigurationError(problems: [.init(file: "clients.\(settings.name)", message: "\(error)")])
            }
        }
        return clients
    }

    func discard(_ assembled: Assembled) async {
        traces.discard(assembled.tracing)
        await BlockingWork.run { [audit] in audit.discard(assembled.audit) }
    }

    /// Replaces the objects of the former configuration.
    func use(_ assembled: Assembled) async {
        let configuration = assembled.configuration
        await BlockingWork.run { [audit] in audit.install(assembled.audit) }
        traces.use(assembled.tracing)
        registry.set(assembled.clients.map(\.heimdallr))
        repairs.use(assembled.clients)
        app.log.level.configure(configuration.log.level)
        files.tls.keep(configuration.peerFiles)
        files.listeners.keep(configuration.listenerFiles)
        files.update()
        watch.setHooks(configuration, on: loops[0])
        tokens?.change(to: configuration.grantTypes)
    }
}

extension Configuration {
    fileprivate var grantTypes: [(name: String, grantType: String)] {
        clients.map { (name: $0.name, grantType: $0.grantType.description) }
    }
}
