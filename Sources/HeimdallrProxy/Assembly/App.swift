import Administration
import Configuration
import CurlTransport
import Heimdallr
import HeimdallrCurl
import Logging
import Proxy
import Reactor

/// The only place where the objects of the process are made and joined.
struct App {
    let configuration: Configuration
    let logger: Logger
    let logWriter: LogWriter

    /// Starts everything: the clients' tokens are asked for, the listeners accept.
    /// - Throws: when it can't listen, or a client can't work.
    func start() async throws -> RunningApp {
        var loops: [EventLoop] = []
        for index in 0..<configuration.proxy.threads { loops.append(try EventLoop.start(name: "loop \(index)")) }
        let reloads = ReloadCounts()
        let secrets = SecretShelf(configuration, counts: reloads, logger: logger)
        let store = try await StoreAssembly(settings: configuration.store, secrets: secrets, logger: logger).make()
        let tokens = AdministrationAssembly.tokenMetrics(configuration)
        var clients: [String: Heimdallr] = [:]
        var lastRequests: [String: TokenRequestNotes] = [:]
        for settings in configuration.clients {
            let last = TokenRequestNotes()
            lastRequests[settings.name] = last
            clients[settings.name] = try ClientAssembly(settings, configuration, secrets).make(
                on: loops[0], store: store, last: last, onTokenRequest: { tokens?.record($0) })
        }
        await secrets.prime()
        let signIns = SignInDirectory()
        var observer = ProxyObserver()
        observer.signIn = { signIns.hint(for: $0) }
        if configuration.log.access { observer.accessLog = AccessLog(writer: logWriter).sink }
        let failures = UpstreamFailures()
        observer.upstreamFailed = { [logger] failure in
            failures.note(failure)
            EventLog.write(failure, to: logger)
        }
        observer.acceptFailed = { [logger] error in
            logger.error("a connection could not be accepted", metadata: ["reason": "\(error)"])
        }
        observer.userSecretLost = { [logger] user, error in
            logger.warning(
                "a user can't come in: the secret can't be read",
                metadata: ["user": "\(user)", "reason": "\(error)"])
        }
        observer.credentialFailed = { [logger] entry, error in
            logger.warning(
                "a credential can't be read: the last good one stays, if there was one",
                metadata: ["entry": "\(entry)", "reason": "\(error)"])
        }
        observer.userGuessed = { [logger] peer, user, count in
            logger.warning(
                "wrong passwords of proxy.users",
                metadata: ["peer": "\(peer)", "user": "\(user ?? "(unknown)")", "wrong": .stringConvertible(count)])
        }
        let server = try await ProxyServer(
            configuration, clients: clients, loops: loops, observer: observer,
            users: configuration.proxy.users.mapValues { secrets.door($0) },
            credentials: CredentialSources { secrets.secret($0) })
        let administration: Administration?
        do {
            administration = try await AdministrationAssembly(
                configuration, clients: clients, server: server, lastRequests: lastRequests, failures: failures,
                secrets: secrets, reloads: reloads
            ).start(tokens: tokens, logger: logger)
        } catch {
            await server.drain(within: .zero)
            for loop in loops { loop.stop() }
            throw error
        }
        if let administration {
            for address in administration.listenAddresses { server.own.add(address) }
        }
        signIns.set(administration)
        let hooks = Hooks(configuration, on: loops[0], logger: logger) { signIns.hint(for: $0) }
        // Watchers begin before anything happens.
        var watchers = clients.values.map { client in
            let events = client.events()
            let last = lastRequests[client.name]
            return Task { [logger] in
                for await event in events {
                    EventLog.write(event, of: client, last: last?.current, to: logger) { signIns.hint(for: $0) }
                }
            }
        }
        if let hooks {
            watchers += clients.values.map { client in
                let events = client.events()
                return Task {
                    for await event in events { await hooks.tell(event, of: client) }
                }
            }
        }
        for client in clients.values { client.start() }
        let places = ProxyServer.clientLimit(configuration.proxy)
        if places < configuration.proxy.maxConnections {
            logger.warning(
                "fewer clients at once than max_connections: raise the limit of file descriptors (ulimit -n)",
                metadata: [
                    "max_connections": .stringConvertible(configuration.proxy.maxConnections),
                    "clients": .stringConvertible(places),
                ])
        }
        for address in server.addresses { logger.info("listening", metadata: ["address": "\(address)"]) }
        if let administration {
            logger.info(
                "administration",
                metadata: ["address": "\(administration.address)", "socket": "\(administration.socketPath)"])
        }
        return RunningApp(
            server: server, clients: Array(clients.values), loops: loops, watchers: watchers,
            administration: administration)
    }

    /// So long after the start, memory that only the start needed is given back.
    private static let settleTime = Duration.seconds(2)

    /// Runs until `stops` has something, then lets requests finish. A second signal ends them at once.
    /// - Parameter onListening: told once it accepts.
    func run(until stops: AsyncStream<Void>, onListening: (RunningApp) -> Void) async throws {
        let running = try await start()
        onListening(running)
        let settling = Task {
            try await Task.sleep(for: Self.settleTime)
            StartPages.release()
        }
        // What came while the proxy started has waited.
        for await _ in stops { break }
        settling.cancel()
        let again = Task {
            for await _ in stops {
                running.server.end()
                for client in running.clients { client.shutdown() }
            }
        }
        await running.stop(drainTimeout: configuration.proxy.drainTimeout)
        again.cancel()
        logger.info("stopped")
    }
}

/// A proxy that accepts.
struct RunningApp: Sendable {
    let server: ProxyServer
    let clients: [Heimdallr]
    let loops: [EventLoop]
    let watchers: [Task<Void, Never>]
    let administration: Administration?

    var addresses: [String] { server.addresses.map(\.description) }
    /// Where the administration's page is, `HOST:PORT`.
    var page: String? { administration?.address }

    /// Lets requests finish for so long, then ends everything.
    func stop(drainTimeout: Duration = .seconds(1)) async {
        let begin = ContinuousClock.now
        administration?.beginDraining()
        await server.drain(within: drainTimeout)
        // Nobody waits for these any more, but a refresh token that is on its way must not be lost.
        let left = max(.seconds(1), drainTimeout - (ContinuousClock.now - begin))
        await withDiscardingTaskGroup { group in
            for client in clients { group.addTask { await client.drain(within: left) } }
        }
        await administration?.stop()
        for client in clients { client.shutdown() }
        for watcher in watchers { watcher.cancel() }
        // A hook's command is not left behind.
        for watcher in watchers { await watcher.value }
        for loop in loops { loop.stop() }
    }
}
