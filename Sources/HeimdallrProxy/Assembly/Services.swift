import Administration
import Configuration
import Heimdallr
import Logging
import Proxy
import Reactor

/// Parts of the process that outlive a configuration.
struct Services: Sendable {
    let logger: Logger
    let logLevel: LogLevel
    /// Stops the process, as SIGTERM does.
    let quit: @Sendable () -> Void
    let loops: [EventLoop]
    let reloads = ReloadCounts()
    let reloadQueue = ReloadQueue()
    let files: FreshFiles
    let store: any OAuthAccessTokenStore
    /// Sign-ins that are shared with other processes.
    let pendingLogins: (any PendingLoginStore)?
    let traces: Traces
    /// `nil` without an admin port, which shows them.
    let tokens: TokenMetrics?
    let watch: Watch
    let audit: AuditTrail

    var secrets: SecretCache { files.secrets }
    var tls: TLSFileCache { files.tls }

    /// - Throws: when a loop, the store or the tracing can't be set up.
    init(_ app: App) async throws {
        let configuration = app.configuration
        logger = app.logger
        logLevel = app.logLevel
        quit = app.quit
        loops = try (0..<configuration.proxy.threads).map { try EventLoop.start(name: "loop \($0)") }
        files = FreshFiles(
            secrets: SecretCache(configuration, counts: reloads, logger: logger),
            tls: TLSFileCache(counts: reloads, logger: logger), logger: logger)
        await files.tls.add(configuration)
        let stores = try await StoreAssembly(
            settings: configuration.store, secrets: files.secrets, logger: logger,
            trustAnchors: configuration.trustAnchorsFile, longestTimeout: configuration.longestTimeout
        ).make()
        store = stores.tokens
        pendingLogins = stores.pendingLogins
        traces = Traces(secrets: files.secrets, tls: files.tls, logger: logger)
        tokens = configuration.admin.map { _ in TokenMetrics(clients: configuration.tokenClients) }
        watch = Watch(logger: logger, logWriter: app.logWriter)
        audit = AuditTrail(logger: logger)
    }

    /// - Parameter isHeld: whether it waits for a former client of its name.
    func client(
        _ settings: ClientSettings, _ configuration: Configuration, isHeld: Bool
    ) throws(HeimdallrConfigurationError) -> KeptClient {
        try KeptClient(
            settings, configuration, secrets, tls, on: loops[0], store: store, isHeld: isHeld, traces: traces,
            onTokenRequest: { [tokens, logger] report in
                tokens?.record(report)
                EventLog.write(report, to: logger)
            })
    }

    /// Waits a moment for the secrets. One slow secret delays no other client's requests, and no probe.
    func primeSecrets() async {
        await waitBriefly(atMost: .seconds(1)) { [secrets] in await secrets.prime() }
    }

    /// Opens the audit file or stream of a configuration, without using it.
    func prepareAudit(_ settings: AuditSettings?) async throws(AuditFault) -> AuditStream? {
        try await BlockingWork.run { [audit] in
            Result { () throws(AuditFault) in try audit.prepare(settings) }
        }.get()
    }

    func observer(_ configuration: Configuration, audit: AuditStream?, _ tracing: Traces.Plan) -> ProxyObserver {
        var observer = watch.observer(configuration, audit: audit)
        observer.spans = traces.spans(tracing)
        return observer
    }

    func users(_ configuration: Configuration) -> [String: any SecretProvider] {
        configuration.proxy.users.mapValues { secrets.accessSecret($0) }
    }
}

extension Configuration {
    /// Clients as the metrics of tokens name them.
    var tokenClients: [(name: String, grantType: String)] {
        clients.map { (name: $0.name, grantType: $0.grantType.description) }
    }
}
