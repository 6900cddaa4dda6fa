import Configuration
import CurlTransport
import HTTPServer
import Heimdallr
import Reactor
import Reports

/// What one configuration makes of one loop's part of the proxy: its rules, and its connections upstream. A request keeps
/// to the one that it began with; another one takes its place as a whole. Loop's thread only.
final class RuleSet {
    let settings: ProxySettings
    let idleTimeout: Timeout
    var gate: Gate
    /// `nil`: nobody has to say who they are.
    let users: UserDirectory?
    private(set) var upstreams: [Upstream] = []
    private var unmatched: Upstream?
    /// `nil`: CONNECT is refused.
    private(set) var tunnels: Tunnels?
    var metrics: ProxyMetrics
    let layout: MetricsLayout
    private let roles: [Int: ListenerRole]
    private let addresses: [Int: SocketAddress]
    private let trustAnchors: String?
    /// What is counted of connections, by the layout's places; goes on in whoever takes its place.
    private let connections: [ConnectionCounts]
    private var underWay = 0
    /// Set once another has taken its place: told when the last request is over.
    private var whenOver: (() -> Void)?
    private var timer: LoopTimer?

    /// How long after its last request, and how often, it is looked whether anything still uses what it holds.
    private static let quietInterval = Duration.seconds(1)

    /// - Parameter former: whose connections and tunnels go on where their settings are the same.
    /// - Throws: `TransportError` when libcurl lacks memory.
    init(_ plan: ProxyPlan, former: RuleSet?, rack: ExchangeRack, loop: EventLoop) throws {
        let configuration = plan.configuration
        settings = configuration.proxy
        idleTimeout = Timeout(settings.idleTimeout)
        users = plan.users
        layout = plan.layout
        metrics = ProxyMetrics(slots: plan.layout.slots)
        trustAnchors = configuration.trustAnchorsFile
        connections = plan.layout.empty.map { part in
            former?.layout.empty.firstIndex { $0.isOf(part) }.flatMap { former?.connections[$0] } ?? ConnectionCounts()
        }
        var roles: [Int: ListenerRole] = [:]
        for listener in plan.listeners { roles[listener.number] = ListenerRole(listener, configuration) }
        self.roles = roles
        addresses = plan.listeners.reduce(into: [:]) { $0[$1.number] = $1.bound }
        gate = Gate(
            configuration, routes: plan.routes, users: plan.users,
            baseURLs: plan.listeners.compactMap { roles[$0.number]?.baseURL })
        let keepsAnchors = former?.trustAnchors == trustAnchors
        let own = plan.own
        if let former, former.settings.hasSameTunnels(as: settings) {
            tunnels = former.tunnels
        } else {
            tunnels = try Tunnels(settings, own: own, loop: loop)
        }
        if settings.unmatched == .forward {
            let kept = keepsAnchors && former?.settings.privateNetworks == settings.privateNetworks
            unmatched = Upstream(
                unmatched: settings, trustAnchors: trustAnchors, own: own, rack: rack,
                counts: connections[layout.places[layout.unmatched]],
                material: plan.material(TLSSettings(), trustAnchors), former: kept ? former?.unmatched : nil)
        }
        for rules in gate.upstreams {
            let client = rules.settings.client.flatMap { plan.clients[$0] }
            let kept =
                keepsAnchors
                ? former?.upstreams.first { $0.rules.settings == rules.settings && $0.client === client } : nil
            upstreams.append(
                try Upstream(
                    rules, client: client, fixed: plan.fixed[upstreams.count], trustAnchors: trustAnchors, own: own,
                    rack: rack, counts: connections[layout.places[upstreams.count]],
                    material: plan.material(rules.settings.tls, trustAnchors), former: kept))
        }
        timer = LoopTimer(on: loop) { [unowned self] in lookWhetherOver() }
    }

    deinit { whenOver?() }

    func upstream(for rules: UpstreamRules) -> Upstream? { rules.index.map { upstreams[$0] } ?? unmatched }

    /// What requests mean that come in there; `nil`: it listens no more.
    func role(of listener: Int) -> ListenerRole? { roles[listener] }

    /// Where that one really is; `nil`: it listens no more.
    func address(of listener: Int) -> SocketAddress? { addresses[listener] }

    // MARK: Requests

    func requestStarted() {
        underWay += 1
        metrics.requestStarted()
    }

    func requestEnded(_ result: ProxyMetrics.Result, slot: Int) {
        metrics.requestEnded(result, slot: slot)
        underWay -= 1
        if underWay == 0, whenOver != nil { timer?.schedule(after: Self.quietInterval) }
    }

    /// Of a request that was judged by these rules.
    func slot(_ rules: UpstreamRules?, isConnect: Bool) -> Int {
        if let rules { return rules.index ?? layout.unmatched }
        return isConnect && tunnels != nil ? layout.tunnels : layout.none
    }

    /// What was counted by it.
    var traffic: [UpstreamTraffic] {
        var traffic = layout.empty
        for (slot, place) in layout.places.enumerated() { metrics.add(slot, to: &traffic[place]) }
        return traffic
    }

    /// Adds the connections that it has made or taken over, as they are now.
    /// - Parameter counted: pools that were added already.
    func addConnections(to report: inout TrafficReport, counted: inout Set<ObjectIdentifier>) {
        for (upstream, slot) in upstreamSlots {
            let part = layout.empty[layout.places[slot]]
            guard let index = report.upstreams.firstIndex(where: { $0.isOf(part) }) else { continue }
            var use = report.upstreams[index].connections ?? ConnectionUse()
            upstream.addConnections(to: &use, counted: &counted)
            report.upstreams[index].connections = use
        }
    }

    /// Adds what was counted of connections, and how many there may be; of the rules in use only.
    func addCounts(to report: inout TrafficReport) {
        for (upstream, slot) in upstreamSlots {
            let place = layout.places[slot]
            var use = report.upstreams[place].connections ?? ConnectionUse()
            use.limit += upstream.rules.settings.maxConnections
            // Upstreams of one place count together.
            use.opened = connections[place].opened
            use.reused = connections[place].reused
            use.certificateEnd = connections[place].certificateEnd
            report.upstreams[place].connections = use
        }
    }

    private var upstreamSlots: [(upstream: Upstream, slot: Int)] {
        let named = upstreams.enumerated().map { (upstream: $1, slot: $0) }
        return named + [unmatched].compactMap { $0.map { (upstream: $0, slot: layout.unmatched) } }
    }

    // MARK: The end

    /// Another one has taken its place.
    /// - Parameter done: called when nothing of it is used any more, and its connections are gone but for those that the
    ///   other one has taken over.
    func retire(_ done: @escaping () -> Void) {
        whenOver = done
        if underWay == 0 { timer?.schedule(after: Self.quietInterval) }
    }

    /// Behind the last request its connection may still be on its way back to its pool.
    private func lookWhetherOver() {
        guard underWay == 0, let done = whenOver else { return }
        guard (upstreams + [unmatched].compactMap(\.self)).allSatisfy(\.isQuiet) else {
            timer?.schedule(after: Self.quietInterval)
            return
        }
        whenOver = nil
        upstreams = []
        unmatched = nil
        tunnels = nil
        done()
    }
}

extension ProxySettings {
    fileprivate func hasSameTunnels(as other: ProxySettings) -> Bool {
        connect == other.connect && tunnels == other.tunnels && privateNetworks == other.privateNetworks
    }
}
