import Configuration
import Enclosure
import HTTPMessage
import Logging
import Proxy
import Reactor
import Synchronization

/// An enclosed program as its launcher serves it: the sockets that it passed, and what answers there.
final class EnclosedProgram: Sendable {
    private struct Services {
        var names: NameServer?
        var allowed: AllowedTunnels?
        var listeners: [Int] = []
        var hasEnded = false
    }

    private let enclosure: Enclosure
    private let sockets: Enclosure.Sockets
    private let names = EnclosedNames()
    private let allowed: [AllowedAddress]
    /// What this machine did not give.
    private let lacks: [Enclosure.Lack]
    private let services = Mutex(Services())

    /// Variables of other proxies, which nobody reaches from inside. Those that `exec` sets come after.
    static let foreignProxies: Set<String> = [
        "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "ftp_proxy", "FTP_PROXY",
    ]
    /// Port of the proxy inside, at every address.
    static let proxyPort: UInt16 = 80

    /// Makes the namespaces and the sockets. Blocks.
    init(
        _ enclosure: Enclosure, allowed: [AllowedAddress], _ settings: Configuration
    ) throws(EnclosureRefusal) {
        let addresses = allowed.flatMap { [names] in $0.inside(names) } + settings.ownListeners
        (sockets, lacks) = try enclosure.open(EnclosurePlan(ports: settings.enclosedPorts, allowed: addresses))
        self.enclosure = enclosure
        self.allowed = allowed
    }

    /// Begins to serve the sockets.
    /// - Parameters:
    ///   - user: the program's user of `proxy.users`.
    ///   - loop: loop of the name server and of `--allow`.
    func serve(by server: ProxyServer, user: String?, on loop: EventLoop, _ logger: Logger) async throws {
        let names = try await NameServer(sockets, names, on: loop)
        services.withLock { $0.names = names }
        let tunnels = try await AllowedTunnels(targets, on: loop) { address, reason in
            logger.warning(
                "an allowed address can't be reached", metadata: ["address": "\(address)", "reason": "\(reason)"])
        }
        services.withLock { $0.allowed = tunnels }
        for address in allowed {
            logger.info("an enclosed program may connect directly", metadata: ["address": "\(address.authority)"])
        }
        let programs = EnclosedPrograms(user: user) { [names = self.names] in names.name(at: $0) }
        let inside = Set(targets.map(\.socket.address))
        let listeners = try server.enclose(sockets.listeners.filter { !inside.contains($0.address) }, programs)
        services.withLock { $0.listeners = listeners }
    }

    /// Lets the process become the program. Blocks.
    /// - Parameters:
    ///   - setting: variables to set.
    ///   - mounts: what the program may not see.
    /// - Returns: what this machine does not give.
    func start(
        setting: [String: String] = [:], _ mounts: EnclosureMounts
    ) throws(EnclosureRefusal) -> [Enclosure.Lack] {
        lacks + (try enclosure.start(setting: setting, mounts))
    }

    /// Closes all sockets. A second call does nothing.
    func end(_ server: ProxyServer) {
        let services = services.withLock { services in
            defer { services.hasEnded = true }
            return services
        }
        guard !services.hasEnded else { return }
        sockets.close()
        services.names?.stop()
        services.allowed?.stop()
        server.release(services.listeners)
    }

    /// Listeners of `--allow` with the addresses that they lead to.
    private var targets: [AllowedTunnels.Target] {
        allowed.flatMap { allowed in
            let inside = allowed.inside(names)
            return sockets.listeners.filter { inside.contains($0.address) }
                .map { AllowedTunnels.Target(socket: $0, address: allowed.authority) }
        }
    }
}

extension Configuration {
    /// TCP ports at which an enclosed program reaches the proxy: those of http and https, and those that are configured.
    fileprivate var enclosedPorts: Set<UInt16> {
        var ports: Set<UInt16> = [80, 443]
        for upstream in upstreams { if let port = upstream.host.port { ports.insert(port) } }
        for case .authority(let authority) in proxy.tunnels { if let port = authority.port { ports.insert(port) } }
        return ports
    }

    /// Listeners of upstreams, which programs know as base URLs.
    fileprivate var ownListeners: [SocketAddress] { upstreams.compactMap(\.addressInside) }
}

extension Enclosure.Lack {
    var sentence: String {
        switch self {
        case .mounts:
            "this machine forbids mounts, so the enclosed program sees all files and Unix sockets of its user, also the "
                + "admin socket, secret files and those of container engines; only the network is enclosed"
        case .readOnlyKernel:
            "/proc/sys and /sys are not read-only for the enclosed program: this kernel is older than 5.12, or forbids it"
        case .otherUsers: "the enclosed program has only the user root: this machine does not allow to map others"
        }
    }
}
