import Configuration
public import Cryptography
import CurlTransport
import Heimdallr
import Reactor
import Synchronization
public import TLSServer

/// The proxy: its listeners on its loops. Any thread.
public final class ProxyServer: Sendable {
    /// Failure to listen at an address.
    public struct ListenError: Error, CustomStringConvertible {
        public internal(set) var description: String
        /// Whether the proxy's user may not bind this port. Another user or a service manager can.
        public var isForbidden = false
        /// Whether this machine does not have the address.
        var isForeign = false
        var isInUse = false
        /// Listener's address in the configuration.
        public var listener: ListenAddress?
    }

    /// State that changes with the configuration.
    struct Current {
        var plan: ProxyPlan
        var lastNumber: Int
        /// Number of the newest listener of an enclosure; negative.
        var lastEnclosed = 0
        var shards: [LoopBound<ProxyShard>] = []
    }

    /// Returns the content of the settings' files and of `extra`, a file of trust anchors; `nil`: libcurl reads them.
    public typealias TLSLookUp = @Sendable (TLSSettings, _ extra: String?) -> TLSMaterial?
    /// Returns a listener's current certificate; `nil`: the listener closes new connections. Called on the loops.
    public typealias CertificateLookUp = @Sendable (ListenerTLS) -> TLSServerContext?

    public let loops: [EventLoop]
    private let credentials: CredentialSources
    private let passed: [PassedSocket]
    let leaving = Mutex(Leaving.notYet)
    /// Addresses of all listeners of this process, also the administration's. A request that would go there gets a 508.
    public let own: OwnListeners
    let state: Mutex<Current>
    var current: Current { state.withLock { $0 } }
    /// Certificates of intercepted hosts.
    public var interception: Interception? { current.plan.interception }
    /// Addresses with actual ports: of `proxy.listen`, then of upstreams, in the order of the configuration.
    public var addresses: [SocketAddress] { current.plan.listeners.map(\.bound) }
    var baseURLs: [UpstreamListener] {
        let plan = current.plan
        return plan.listeners.compactMap { ListenerRole($0, plan.configuration).upstreamListener }
    }

    /// Reads the secrets, binds all listeners and starts accepting.
    /// - Parameters:
    ///   - clients: OAuth clients by their names in the configuration.
    ///   - loops: running loops, one per `proxy.threads`.
    ///   - users: the secrets of all `proxy.users`.
    ///   - credentials: sources of injected values other than tokens.
    ///   - interception: certificates of intercepted hosts.
    ///   - certificate: certificates of the listeners with TLS.
    ///   - own: set to which the addresses of the listeners are added.
    ///   - passed: listening sockets from the service manager.
    ///   - placeholderKeys: keys of issued placeholders, the one for new placeholders first; empty: a random key.
    /// - Throws: `ListenError`, or `TransportError` when libcurl lacks memory.
    public init(
        _ configuration: Configuration, clients: [String: Heimdallr], loops: [EventLoop], observer: ProxyObserver,
        users: [String: any SecretProvider] = [:], credentials: CredentialSources = .none,
        material: @escaping TLSLookUp = { _, _ in nil }, interception: Interception? = nil,
        certificate: @escaping CertificateLookUp = { _ in nil }, own: OwnListeners = [], passed: [PassedSocket] = [],
        placeholderKeys: [SecretBytes] = []
    ) async throws {
        let seal = PlaceholderSeal(
            keys: placeholderKeys.isEmpty ? [SecretBytes(try RandomBytes.make(32))] : placeholderKeys)
        self.passed = passed
        self.credentials = credentials
        let fixed = await Self.fixed(configuration, credentials, observer, on: loops)
        let directory = try await Self.directory(configuration, users, observer)
        self.loops = loops
        let input = ListenInput(loops: loops.count, passed: passed)
        let change = try ListenerChange(from: [], to: configuration, lastNumber: 0, input)
        for listener in change.listeners { own.add(listener.bound) }
        self.own = own
        // Reads the machine's addresses before the first request.
        _ = InterfaceAddresses.shared
        let plan = ProxyPlan(
            configuration, ProxyPlan.Shared(own: own, material: material, certificate: certificate, seal: seal),
            observer: observer, users: directory, fixed: fixed, interception: interception,
            listeners: change.listeners, upstreams: UpstreamPlan(configuration, clients: clients))
        state = Mutex(Current(plan: plan, lastNumber: change.lastNumber))
        for (index, loop) in loops.enumerated() {
            let mine = change.opened.map { $0.sockets[index] }
            let shard = try await loop.run { LoopBound(try ProxyShard(plan, sockets: mine, loop: loop), on: loop) }
            state.withLock { $0.shards.append(shard) }
        }
        for client in clients.values { watch(client) }
    }

    /// Changes the configuration. Requests under way keep the old configuration. Unchanged listeners, upstream
    /// connections and counters continue. Must not be called concurrently.
    /// - Parameters:
    ///   - configuration: new configuration with the same `proxy.threads`.
    ///   - clients: OAuth clients by name; the same objects for unchanged clients.
    ///   - users: the secrets of the new `proxy.users`.
    ///   - ready: called when the listeners are open, before anything changes. If it throws, nothing has changed.
    /// - Returns: a task that ends when the old configuration is no longer used.
    /// - Throws: `ListenError`, or `TransportError` when libcurl lacks memory. Then nothing has changed.
    public func change(
        to configuration: Configuration, clients: [String: Heimdallr], observer: ProxyObserver,
        users: [String: any SecretProvider] = [:], interception: Interception? = nil,
        ready: () async throws -> Void = {}
    ) async throws -> Task<Void, Never> {
        let former = current
        let same = UpstreamPlan.matches(of: configuration.upstreams, in: former.plan.configuration.upstreams)
        let fixed = await Self.fixed(configuration, credentials, observer, on: loops, former: former.plan, same: same)
        let hasSameUsers = former.plan.configuration.proxy.users == configuration.proxy.users
        let directory =
            hasSameUsers ? former.plan.users : try await Self.directory(configuration, users, observer)
        let change = try ListenerChange(
            from: former.plan.listeners, of: former.plan.configuration, to: configuration,
            lastNumber: former.lastNumber,
            ListenInput(loops: loops.count, passed: passed))
        let plan = ProxyPlan(
            configuration, former.plan.shared, observer: observer, users: directory, fixed: fixed,
            interception: interception, listeners: change.listeners, generation: former.plan.generation + 1,
            upstreams: UpstreamPlan(configuration, clients: clients, former: former.plan.upstreams, same: same),
            former: former.plan)
        var prepared: [LoopBound<InstalledPlan>] = []
        do {
            for shard in former.shards {
                prepared.append(
                    try await shard.loop.run { LoopBound(shard.value.prepare(plan), on: shard.loop) })
            }
            try await ready()
        } catch {
            change.abandon()
            throw error
        }
        for listener in change.opened { own.add(listener.listener.bound) }
        state.withLock {
            $0.plan = plan
            $0.lastNumber = change.lastNumber
        }
        var ends: [AsyncStream<Void>] = []
        for (index, shard) in former.shards.enumerated() {
            let opened = change.opened.map { (number: $0.listener.number, socket: $0.sockets[index]) }
            let (over, end) = AsyncStream<Void>.makeStream()
            let installed = prepared[index]
            let closed = change.closed.map(\.number)
            await withCheckedContinuation { continuation in
                shard.loop.execute {
                    shard.value.install(installed.value, plan, opened: opened, closed: closed) { end.finish() }
                    continuation.resume()
                }
            }
            ends.append(over)
        }
        change.setModes()
        for listener in change.closed where !change.listeners.contains(where: { $0.bound == listener.bound }) {
            own.remove(listener.bound)
        }
        let known = Set(former.plan.upstreams.named.values.map { ObjectIdentifier($0) })
        for client in clients.values where !known.contains(ObjectIdentifier(client)) { watch(client) }
        return Task { [ends] in for end in ends { for await _ in end {} } }
    }

    /// Wipes the copies of this client's token whenever it loses or replaces the token.
    private func watch(_ client: Heimdallr) {
        client.observe { [weak self, weak client] event in
            switch event.kind {
            case .tokenLost, .tokenRefreshed, .tokenAcquired: if let client { self?.forgetCredentials(of: client) }
            default: break
            }
        }
    }

    private func forgetCredentials(of client: Heimdallr) {
        for shard in current.shards { shard.loop.execute { shard.value.forgetCredentials(of: client) } }
    }

    /// - Throws: `ListenError` when a user's secret is missing, unreadable or no valid password.
    private static func directory(
        _ configuration: Configuration, _ users: [String: any SecretProvider], _ observer: ProxyObserver
    ) async throws(ListenError) -> UserDirectory? {
        let names = Set(configuration.proxy.users.keys)
        guard names == Set(users.keys) else {
            throw ListenError(description: "the secrets of proxy.users are missing")
        }
        return names.isEmpty ? nil : try await UserDirectory(users, secretLost: observer.userSecretLost)
    }

    /// Returns the injected values other than tokens. Waits at most a second for the first reading of new values.
    /// - Parameter same: result of `UpstreamPlan.matches` in the former configuration.
    private static func fixed(
        _ configuration: Configuration, _ sources: CredentialSources, _ observer: ProxyObserver, on loops: [EventLoop],
        former: ProxyPlan? = nil, same: [Int?] = []
    ) async -> [[FixedCredential?]] {
        guard let loop = loops.first else { return [] }
        var new: [FixedCredential] = []
        let values = configuration.upstreams.enumerated().map { number, upstream -> [FixedCredential?] in
            // An unchanged upstream keeps its values, with their last good reading.
            if let former, let place = same[number] { return former.fixed[place] }
            var made = upstream.injections.enumerated().map { index, injection in
                sources.credential(
                    injection, entry: "upstreams[\(number)].inject[\(index)] (\(injection))", on: loop,
                    failed: observer.credentialFailed)
            }
            for (index, entry) in upstream.issue.enumerated() {
                made += entry.secrets.map { key, source in
                    source.flatMap {
                        sources.credential(
                            .query(name: key, value: $0), entry: "upstreams[\(number)].issue[\(index)].\(key)",
                            on: loop,
                            failed: observer.credentialFailed)
                    }
                }
            }
            if let source = upstream.metadata?.authorization {
                made.append(
                    sources.credential(
                        .query(name: "authorization", value: source), entry: "metadata (authorization)", on: loop,
                        failed: observer.credentialFailed))
            }
            new += made.compactMap(\.self)
            return made
        }
        // A value that takes longer does not delay the start. Until it is read, requests that need it are refused.
        await waitBriefly(atMost: .seconds(1)) { [new] in
            await withDiscardingTaskGroup { group in
                for value in new { group.addTask { await value.start() } }
            }
        }
        return values
    }
}
