import Configuration
import Heimdallr
import Reactor
import Synchronization

/// What every loop's part of the proxy is made from.
struct ProxyPlan: Sendable {
    struct Listener: Sendable {
        let socket: ListeningSocket
        /// Index of the upstream whose own `listen` it is.
        let upstream: Int?
    }
    let configuration: Configuration
    let clients: [String: Heimdallr]
    let observer: ProxyObserver
    let routes: RouteTable
    let layout: MetricsLayout
    let ownAddresses: [SocketAddress]
}

/// The proxy: its listeners on its loops. May be used from any thread.
public final class ProxyServer: Sendable {
    /// Where it can't listen, and why.
    public struct ListenError: Error, CustomStringConvertible {
        public let description: String
    }

    public let loops: [EventLoop]
    /// Where it listens: `proxy.listen` first, then upstreams' own, in the order of the configuration.
    public let addresses: [SocketAddress]
    let layout: MetricsLayout
    private let shards = Mutex<[LoopBound<ProxyShard>]>([])
    var currentShards: [LoopBound<ProxyShard>] { shards.withLock { $0 } }

    /// Binds and starts accepting.
    ///
    /// - Parameters:
    ///   - clients: by the names that the configuration's upstreams use.
    ///   - loops: already running, one per `proxy.threads`.
    /// - Throws: `ListenError`, or what libcurl says when it lacks memory.
    public init(
        _ configuration: Configuration, clients: [String: Heimdallr], loops: [EventLoop], observer: ProxyObserver
    ) async throws {
        self.loops = loops
        layout = MetricsLayout(configuration)
        var listeners: [[ProxyPlan.Listener]] = loops.map { _ in [] }
        var addresses: [SocketAddress] = []
        do {
            for (address, upstream) in Self.wanted(configuration) {
                for resolved in try Self.resolve(address) {
                    var bound = resolved
                    for index in loops.indices {
                        let socket = try Self.open(bound, shares: loops.count > 1)
                        // The other loops share the port that the kernel chose for the first.
                        bound = socket.address
                        listeners[index].append(ProxyPlan.Listener(socket: socket, upstream: upstream))
                    }
                    addresses.append(bound)
                }
            }
        } catch {
            for listener in listeners.joined() { listener.socket.close() }
            throw error
        }
        self.addresses = addresses
        let plan = ProxyPlan(
            configuration: configuration, clients: clients, observer: observer,
            routes: RouteTable(configuration.upstreams), layout: layout, ownAddresses: addresses)
        for (index, loop) in loops.enumerated() {
            let mine = listeners[index]
            let shard = try await loop.run {
                LoopBound(try ProxyShard(plan, listeners: mine, loop: loop), on: loop)
            }
            shards.withLock { $0.append(shard) }
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

    private static func wanted(_ configuration: Configuration) -> [(ListenAddress, Int?)] {
        configuration.proxy.listen.map { ($0, nil) }
            + configuration.upstreams.enumerated().compactMap { index, upstream in
                upstream.listen.map { ($0, index) }
            }
    }

    private static func resolve(_ address: ListenAddress) throws(ListenError) -> [SocketAddress] {
        switch address {
        case .tcp(let host, let port):
            if let numeric = SocketAddress(numericHost: host, port: port) { return [numeric] }
            do throws(ResolutionError) {
                return try SocketAddress.resolve(host: host, port: port)
            } catch {
                throw ListenError(description: "can't listen on \(host): \(error)")
            }
        case .unix(let path, _): return [SocketAddress(.unix(path: path))]
        }
    }

    private static func open(_ address: SocketAddress, shares: Bool) throws(ListenError) -> ListeningSocket {
        do throws(SystemError) {
            return try ListeningSocket.open(address, sharesPort: shares)
        } catch {
            throw ListenError(description: "can't listen on \(address): \(error)")
        }
    }
}
