import Configuration
import CurlTransport
import Heimdallr
import Reactor

/// The configuration and the objects that all loops share.
struct ProxyPlan: Sendable {
    struct Listener: Sendable {
        /// Number that no other listener of this process ever has.
        let number: Int
        let address: ListenAddress
        /// Address with the actual port.
        let bound: SocketAddress
        /// Index of the upstream that has this `listen`; `nil` for `proxy.listen`.
        var upstream: Int?

        /// Returns the listener's TLS settings; `nil` for plain HTTP.
        func tls(_ configuration: Configuration) -> ListenerTLS? { configuration.tls(of: address, upstream: upstream) }
    }
    /// Parts that no configuration changes.
    struct Shared: Sendable {
        let own: OwnListeners
        let material: ProxyServer.TLSLookUp
        let certificate: ProxyServer.CertificateLookUp
        let seal: PlaceholderSeal?
    }
    let configuration: Configuration
    let shared: Shared
    let observer: ProxyObserver
    let routes: RouteTable
    let layout: MetricsLayout
    let placeholders: PlaceholderGuard?
    let users: UserDirectory?
    /// Injected values other than tokens, by upstream and entry of `inject`.
    let fixed: [[FixedCredential?]]
    let interception: Interception?
    /// Listeners of `proxy.listen`, then those of upstreams, in the order of the configuration.
    let listeners: [Listener]
    let upstreams: UpstreamPlan
    /// Number of reloads so far.
    let generation: Int
    /// Open listeners by number. `address` has the actual port; `tls` is `nil` for plain HTTP.
    let roles: [Int: Role]
    typealias Role = (role: ListenerRole, address: SocketAddress, tls: ListenerTLS?)

    init(
        _ configuration: Configuration, _ shared: Shared, observer: ProxyObserver, users: UserDirectory?,
        fixed: [[FixedCredential?]], interception: Interception?, listeners: [Listener], generation: Int = 0,
        upstreams: UpstreamPlan, former: ProxyPlan? = nil
    ) {
        self.configuration = configuration
        self.shared = shared
        self.observer = observer
        routes = RouteTable(configuration.upstreams)
        layout = MetricsLayout(configuration)
        // Programs may still hold what a former configuration issued.
        let mayBeHeld = former?.placeholders?.guardsIssued == true
        placeholders = PlaceholderGuard(configuration, shared.seal, afterIssuing: mayBeHeld)
        self.users = users
        self.fixed = fixed
        self.interception = interception
        self.listeners = listeners
        self.upstreams = upstreams
        self.generation = generation
        let roles = listeners.map { listener in
            let role = ListenerRole(listener, configuration)
            return (listener.number, (role: role, address: listener.bound, tls: listener.tls(configuration)))
        }
        self.roles = Dictionary(uniqueKeysWithValues: roles)
    }

    /// Returns what a listener at this address of an enclosure is: an upstream's own one, if the upstream has this address,
    /// or else the first of `proxy.listen`.
    func role(ofEnclosed address: SocketAddress) -> Role {
        let upstreams = configuration.upstreams
        let index = upstreams.firstIndex { $0.listenerTLS == nil && $0.addressInside == address }
        let role =
            index.map { ListenerRole.upstream(UpstreamListener(upstreams[$0], index: $0, own: address)) }
            ?? .forward(configuration.proxy.listen.first?.endpoint ?? .tcp(host: "127.0.0.1", port: 80))
        return (role, address, nil)
    }
}
