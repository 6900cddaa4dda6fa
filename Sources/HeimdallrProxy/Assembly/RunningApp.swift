import Administration
import Configuration
import Heimdallr
import Logging
import Proxy
import Reactor
import Synchronization

/// A running proxy that accepts requests.
final class RunningApp: Sendable {
    /// The parts that a new configuration replaces.
    struct Current: Sendable {
        var configuration: Configuration
        var clients: [KeptClient]
        /// Former clients that are still used by requests under way.
        var leaving: [KeptClient] = []
        /// Settings of removed clients by name. Their records may still be in the store.
        var departed: [String: ClientSettings] = [:]
    }

    let server: ProxyServer
    let administration: Administration?
    let watch: Watch
    let audit: AuditTrail
    let traces: Traces
    let files: FreshFiles
    var secrets: SecretCache { files.secrets }
    let store: any OAuthAccessTokenStore
    let tokens: TokenMetrics?
    let reloads: ReloadCounts
    let logger: Logger
    let logLevel: LogLevel
    let read: @Sendable () throws(ConfigurationError) -> ReadConfiguration
    let reloadQueue: ReloadQueue
    let loops: [EventLoop]
    let quit: @Sendable () -> Void
    let current: Mutex<Current>

    init(
        server: ProxyServer, loops: [EventLoop], administration: Administration?, watch: Watch,
        audit: AuditTrail, traces: Traces, files: FreshFiles,
        store: any OAuthAccessTokenStore, tokens: TokenMetrics?, reloads: ReloadCounts, logger: Logger,
        logLevel: LogLevel,
        read: @escaping @Sendable () throws(ConfigurationError) -> ReadConfiguration, configuration: Configuration,
        clients: [KeptClient], reloadQueue: ReloadQueue, quit: @escaping @Sendable () -> Void
    ) {
        self.server = server
        self.loops = loops
        self.administration = administration
        self.watch = watch
        self.audit = audit
        self.traces = traces
        self.files = files
        self.store = store
        self.tokens = tokens
        self.reloads = reloads
        self.logger = logger
        self.logLevel = logLevel
        self.read = read
        self.reloadQueue = reloadQueue
        self.quit = quit
        current = Mutex(Current(configuration: configuration, clients: clients))
    }

    var configuration: Configuration { current.withLock { $0.configuration } }
    /// All clients, including leaving ones.
    var clients: [KeptClient] { current.withLock { $0.clients + $0.leaving } }
    var addresses: [String] { server.addresses.map(\.description) }
    /// Address of the administration's page, `HOST:PORT`.
    var page: String? { administration?.address }

    /// Reads the configuration again; concurrent calls run one after the other.
    func reload() async -> ReloadAnswer { await reloadQueue.reload() }

    /// Time for exporting the remaining spans at the end.
    private static let lastSpans = Duration.seconds(3)

    /// Serves for `delay` without being ready, lets requests finish for `drainTimeout`, then ends everything.
    func stop(drainTimeout: Duration = .seconds(1), delay: Duration = .zero) async {
        let begin = ContinuousClock.now
        administration?.beginDraining()
        await reloadQueue.close()
        await server.drain(within: drainTimeout, after: delay)
        files.end()
        // No request waits for these any more, but a rotated refresh token that is on its way must not be lost.
        let left = max(.seconds(1), drainTimeout + delay - (ContinuousClock.now - begin))
        let clients = clients
        await withDiscardingTaskGroup { group in
            for client in clients { group.addTask { await client.heimdallr.drain(within: left) } }
        }
        let rest = drainTimeout + delay - (ContinuousClock.now - begin)
        await traces.end(within: min(Self.lastSpans, max(.seconds(1), rest)))
        await administration?.stop()
        for client in clients { client.heimdallr.shutdown() }
        await watch.end()
        await BlockingWork.run { [audit] in audit.close() }
        for loop in loops { loop.stop() }
    }
}

extension [KeptClient] {
    var byName: [String: Heimdallr] {
        reduce(into: [:]) { $0[$1.settings.name] = $1.heimdallr }
    }
}
