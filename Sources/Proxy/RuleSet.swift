import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor
import Reports
import TLSServer

/// One configuration on one loop: its rules and upstream connections. A request keeps the rules that it began with.
/// Loop's thread only.
final class RuleSet {
    let settings: ProxySettings
    let idleTimeout: Timeout
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var gate: Gate
    /// `nil`: no login is required.
    let users: UserDirectory?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private(set) var upstreams: [Upstream] = []
    private var unmatched: Upstream?
    /// `nil`: CONNECT is refused.
    private(set) var tunnels: Tunnels?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var metrics: ProxyMetrics
    let layout: MetricsLayout
    /// Open listeners by number. `address` has the actual port; `tls` is `nil` for plain HTTP.
    let listeners: [Int: (role: ListenerRole, address: SocketAddress, tls: ListenerTLS?)]
    let plan: ProxyPlan
    /// Counters of connections, by the layout's rows. The next rules continue the same counters.
    private let connections: [ConnectionCounts]
    private var underWay = 0
    /// Set when the next rules take over. Called when these rules are no longer used.
    private var whenOver: (() -> Void)?
    private var timer: LoopTimer?

    /// Delay from the last request to the check for busy connections, and between two checks.
    private static let quietInterval = Duration.seconds(1)

    /// - Parameter former: earlier rules. Connections and dialers with unchanged settings are taken over.
    init(_ plan: ProxyPlan, former: RuleSet?, exchanges: ExchangePool, loop: EventLoop) {
        let configuration = plan.configuration
        settings = configuration.proxy
        idleTimeout = Timeout(settings.idleTimeout)
        users = plan.users
        layout = plan.layout
        metrics = ProxyMetrics(slots: plan.layout.slots)
        self.plan = plan
        connections = plan.layout.zeroTraffic.map { part in
            let index = former?.layout.zeroTraffic.firstIndex { $0.isOf(part) }
            return index.flatMap { former?.connections[$0] } ?? ConnectionCounts()
        }
        let listeners = plan.listeners.map { listener in
            let role = ListenerRole(listener, configuration)
            return (listener.number, (role: role, address: listener.bound, tls: listener.tls(configuration)))
        }
        self.listeners = Dictionary(uniqueKeysWithValues: listeners)
        gate = Gate(
            configuration, routes: plan.routes,
            baseURLs: listeners.compactMap { $0.1.role.upstreamListener })
        let trustAnchors = configuration.trustAnchorsFile
        let keepsAnchors = former.map { $0.plan.configuration.trustAnchorsFile == trustAnchors } ?? false
        let own = plan.own
        let hasSameNetworks = former?.settings.privateNetworks == settings.privateNetworks
        if let former, hasSameNetworks, former.settings.connect == settings.connect,
            former.settings.tunnels == settings.tunnels
        {
            tunnels = former.tunnels
        } else {
            tunnels = Tunnels(settings, own: own, loop: loop)
        }
        func poolOptions(_ rules: UpstreamRules, _ slot: Int) -> PoolOptions {
            var options = PoolOptions(upstream: rules.settings, trustAnchors: trustAnchors)
            options.material = plan.material(rules.settings.tls, trustAnchors)
            options.addressPolicy.own = own
            options.counts = connections[layout.rows[slot]]
            return options
        }
        if settings.unmatched == .forward {
            var options = poolOptions(.unmatched, layout.unmatched)
            options.addressPolicy.publicOnly = true
            options.addressPolicy.exceptions = settings.privateNetworks.map { AddressPolicy.Block($0) }
            unmatched = Upstream(
                .unmatched, options: options, exchanges: exchanges,
                former: keepsAnchors && hasSameNetworks ? former?.unmatched : nil)
        }
        for rules in gate.upstreams {
            let client = rules.settings.client.flatMap { plan.clients[$0] }
            let kept =
                keepsAnchors
                ? former?.upstreams.first { $0.rules.settings == rules.settings && $0.client === client } : nil
            upstreams.append(
                Upstream(
                    rules, client: client, fixed: plan.fixed[upstreams.count],
                    options: poolOptions(rules, upstreams.count),
                    exchanges: exchanges, former: kept))
        }
        timer = LoopTimer(on: loop) { [unowned self] in endIfQuiet() }
    }

    deinit { whenOver?() }

    /// Returns the routes of an intercepted host; `nil` for any other host.
    func intercepted(_ authority: Authority) -> RouteTable.Rules? {
        plan.routes.rules(for: authority, scheme: .https).flatMap { $0.intercepts ? $0 : nil }
    }

    var headerTimeout: Timeout { Timeout(settings.headerTimeout) }

    func upstream(for rules: UpstreamRules) -> Upstream? { rules.index.map { upstreams[$0] } ?? unmatched }

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

    func slot(_ rules: UpstreamRules?, isConnect: Bool) -> Int {
        if let rules { return rules.index ?? layout.unmatched }
        return isConnect && tunnels != nil ? layout.tunnels : layout.noUpstream
    }

    var traffic: [UpstreamTraffic] {
        var traffic = layout.zeroTraffic
        for (slot, row) in layout.rows.enumerated() { metrics.add(slot, to: &traffic[row]) }
        return traffic
    }

    /// Adds the current connections.
    /// - Parameter counted: connection pools already added.
    func addConnections(to report: inout TrafficReport, counted: inout Set<ObjectIdentifier>) {
        for (upstream, slot) in upstreamSlots {
            let part = layout.zeroTraffic[layout.rows[slot]]
            guard let index = report.upstreams.firstIndex(where: { $0.isOf(part) }) else { continue }
            var use = report.upstreams[index].connections ?? ConnectionUse()
            upstream.addConnections(to: &use, counted: &counted)
            report.upstreams[index].connections = use
        }
    }

    /// Adds the counters and limits of connections. Called for the current rules only.
    func addCounts(to report: inout TrafficReport) {
        for (upstream, slot) in upstreamSlots {
            let row = layout.rows[slot]
            var use = report.upstreams[row].connections ?? ConnectionUse()
            use.limit += upstream.rules.settings.maxConnections
            // Upstreams of the same row share these counters, so they are set, not added.
            use.opened = connections[row].opened
            use.reused = connections[row].reused
            use.certificateEnd = connections[row].certificateEnd
            report.upstreams[row].connections = use
        }
    }

    private var upstreamSlots: [(upstream: Upstream, slot: Int)] {
        let named = upstreams.enumerated().map { (upstream: $1, slot: $0) }
        return named + [unmatched].compactMap { $0.map { (upstream: $0, slot: layout.unmatched) } }
    }

    // MARK: The end

    /// Begins the end of these rules, after the next rules took over.
    /// - Parameter done: called when these rules are no longer used, and their connections are closed or taken over.
    func retire(_ done: @escaping () -> Void) {
        whenOver = done
        if underWay == 0 { timer?.schedule(after: Self.quietInterval) }
    }

    /// Ends these rules, or tries again later if a connection is busy: it may stay busy after the last request ended.
    private func endIfQuiet() {
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
