import Configuration
import CurlTransport
import Heimdallr
import Reactor
import Synchronization

/// What every loop's part of the proxy is made from.
struct ProxyPlan: Sendable {
    struct Listener: Sendable {
        let socket: ListeningSocket
        /// As it is configured.
        let address: ListenAddress
        /// Index of the upstream whose own `listen` it is.
        let upstream: Int?
    }
    let configuration: Configuration
    let clients: [String: Heimdallr]
    let observer: ProxyObserver
    let routes: RouteTable
    let layout: MetricsLayout
    let own: OwnListeners
    let users: UserDirectory?
    /// What is injected besides tokens, by upstream and entry.
    let fixed: [[FixedCredential?]]
}

/// The proxy: its listeners on its loops. May be used from any thread.
public final class ProxyServer: Sendable {
    /// Where it can't listen, and why.
    public struct ListenError: Error, CustomStringConvertible {
        public let description: String
        /// Set where somebody else listens there.
        public var portInUse: UInt16?
        /// The same, for a Unix socket.
        public var pathInUse: String?
    }

    public let loops: [EventLoop]
    /// Where it listens: `proxy.listen` first, then upstreams' own, in the order of the configuration.
    public let addresses: [SocketAddress]
    /// What is dialled there comes back (508): `addresses`, and the process's other listeners once they are added.
    public let own: OwnListeners
    let layout: MetricsLayout
    let configuration: Configuration
    /// Upstreams' own listeners.
    let baseURLs: [UpstreamListener]
    private let shards = Mutex<[LoopBound<ProxyShard>]>([])
    var currentShards: [LoopBound<ProxyShard>] { shards.withLock { $0 } }

    /// Binds and starts accepting.
    ///
    /// - Parameters:
    ///   - clients: by the names that the configuration's upstreams use.
    ///   - loops: already running, one per `proxy.threads`.
    ///   - users: the secrets of `proxy.users`, all of them.
    ///   - credentials: where what is injected besides tokens comes from.
    /// - Throws: `ListenError`, or what libcurl says when it lacks memory.
    public init(
        _ configuration: Configuration, clients: [String: Heimdallr], loops: [EventLoop], observer: ProxyObserver,
        users: [String: any SecretProvider] = [:], credentials: CredentialSources = .none
    ) async throws {
        let fixed = await Self.fixed(configuration, credentials, observer, on: loops)
        let directory = try await Self.directory(configuration, users, observer)
        self.loops = loops
        layout = MetricsLayout(configuration)
        var listeners: [[ProxyPlan.Listener]] = loops.map { _ in [] }
        var addresses: [SocketAddress] = []
        do {
            for (address, upstream) in Self.wanted(configuration) {
                for sockets in try Self.open(address, loops: loops.count) {
                    for (index, socket) in sockets.enumerated() {
                        listeners[index].append(
                            ProxyPlan.Listener(socket: socket, address: address, upstream: upstream))
                    }
                    addresses.append(sockets[0].address)
                }
            }
        } catch {
            for listener in listeners.joined() { listener.socket.close() }
            throw error
        }
        self.addresses = addresses
        self.configuration = configuration
        baseURLs = listeners[0].compactMap { ListenerRole($0, configuration).baseURL }
        own = OwnListeners(addresses)
        // Read before the first request, not by it.
        _ = InterfaceAddresses.shared
        let plan = ProxyPlan(
            configuration: configuration, clients: clients, observer: observer,
            routes: RouteTable(configuration.upstreams), layout: layout, own: own, users: directory,
            fixed: fixed)
        for (index, loop) in loops.enumerated() {
            let mine = listeners[index]
            let shard = try await loop.run {
                LoopBound(try ProxyShard(plan, listeners: mine, loop: loop), on: loop)
            }
            shards.withLock { $0.append(shard) }
        }
        for client in clients.values { watch(client) }
    }

    /// What was made of a token for requests is wiped when the token goes, and not only when the next one comes.
    private func watch(_ client: Heimdallr) {
        let events = client.events()
        Task { [weak self] in
            for await event in events {
                switch event.kind {
                case .tokenLost, .tokenRefreshed, .tokenAcquired: self?.forgetCredentials()
                default: break
                }
            }
        }
    }

    private func forgetCredentials() {
        for shard in currentShards {
            shard.loop.execute { for upstream in shard.value.upstreams { upstream.forgetCredential() } }
        }
    }

    /// Stops accepting, lets requests finish for `drain_timeout`, then ends the rest. Idle connections close at once.
    public func drain(within limit: Duration) async {
        let shards = self.shards.withLock { $0 }
        await withTaskGroup(of: Void.self) { group in
            for shard in shards {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        shard.loop.execute { shard.value.drain { continuation.resume() } }
                    }
                }
            }
            let timer = Task {
                try await Task.sleep(for: limit)
                for shard in shards { shard.loop.execute { shard.value.stop() } }
            }
            await group.waitForAll()
            timer.cancel()
        }
    }

    /// Ends what is under way, in the middle of it: what was cut can't look whole.
    public func end() {
        for shard in shards.withLock({ $0 }) { shard.loop.execute { shard.value.stop() } }
    }

    /// - Throws: `ListenError` when a user's secret is missing: nobody may come in by mistake.
    private static func directory(
        _ configuration: Configuration, _ users: [String: any SecretProvider], _ observer: ProxyObserver
    ) async throws(ListenError) -> UserDirectory? {
        let names = Set(configuration.proxy.users.keys)
        guard names == Set(users.keys) else {
            throw ListenError(description: "the secrets of proxy.users are not at hand")
        }
        guard !names.isEmpty else { return nil }
        do {
            return try await UserDirectory(users, secretLost: observer.userSecretLost)
        } catch {
            throw ListenError(description: "\(error)")
        }
    }

    /// What is injected besides tokens, read once.
    private static func fixed(
        _ configuration: Configuration, _ sources: CredentialSources, _ observer: ProxyObserver, on loops: [EventLoop]
    ) async -> [[FixedCredential?]] {
        guard let loop = loops.first else { return [] }
        let values = configuration.upstreams.enumerated().map { number, upstream in
            upstream.injections.enumerated().map { index, injection in
                sources.credential(
                    injection, place: "upstreams[\(number)].inject[\(index)] (\(injection))", on: loop,
                    failed: observer.credentialFailed)
            }
        }
        await withDiscardingTaskGroup { group in
            for case let value? in values.joined() { group.addTask { await value.start() } }
        }
        return values
    }

    private static func wanted(_ configuration: Configuration) -> [(ListenAddress, Int?)] {
        configuration.proxy.listen.map { ($0, nil) }
            + configuration.upstreams.enumerated().compactMap { index, upstream in
                upstream.listen.map { ($0, index) }
            }
    }
}
