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
final class InstalledPlan {
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
    /// The upstreams that have had a request, by place: the index in the configuration, and behind these the place of
    /// hosts that the configuration does not name.
    private var used: [Upstream?]
    /// Upstreams of former rules, whose connections the upstream at this place takes over for its first request.
    private var former: [Upstream?]
    /// `nil`: CONNECT is refused.
    private(set) var tunnels: Tunnels?
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var metrics: ProxyMetrics
    let plan: ProxyPlan
    private let streams: UpstreamStreamPool
    private var underWay = 0
    /// Set when the next rules take over. Called when these rules are no longer used.
    private var whenOver: (() -> Void)?
    private var timer: LoopTimer?
    /// Number of places whose upstreams were released.
    private var released = 0

    /// Delay from the last request to the check for busy connections, and between two checks.
    private static let quietInterval = Duration.seconds(1)
    /// Number of upstreams that are released in one turn. Each may have connections that are closed.
    static let releaseStride = 16

    /// Makes the rules. Their work on the loop does not grow with the number of upstreams.
    /// - Parameter former: rules that `install` replaces. Dialers with unchanged settings are taken over.
    init(
        _ plan: ProxyPlan, former: InstalledPlan?, counters: CounterTable, streams: UpstreamStreamPool, loop: EventLoop
    ) {
        let configuration = plan.configuration
        settings = configuration.proxy
        idleTimeout = Timeout(settings.idleTimeout)
        users = plan.users
        let layout = plan.layout
        metrics = ProxyMetrics(slots: layout.slots) { counters.counters(of: layout.key(ofRow: layout.rows[$0])) }
        self.plan = plan
        self.streams = streams
        used = Array(repeating: nil, count: plan.upstreams.rules.count + 1)
        self.former = used
        gate = Gate(
            configuration, routes: plan.routes, upstreams: plan.upstreams.rules,
            baseURLs: plan.listeners.compactMap { plan.roles[$0.number]?.role.upstreamListener },
            placeholders: plan.placeholders)
        if let former, former.settings.privateNetworks == settings.privateNetworks,
            former.settings.connect == settings.connect, former.settings.tunnels == settings.tunnels
        {
            tunnels = former.tunnels
        } else {
            tunnels = Tunnels(settings, own: plan.shared.own, loop: loop)
        }
        timer = LoopTimer(on: loop) { [unowned self] in endIfQuiet() }
    }

    var layout: MetricsLayout { plan.layout }
    /// Open listeners by number.
    var listeners: [Int: ProxyPlan.Role] { plan.roles }

    // MARK: Upstreams

    /// The upstreams whose connections these rules use.
    var upstreams: [Upstream] { (0..<places).compactMap { present(at: $0) } }
    /// Number of places of upstreams.
    var places: Int { used.count }

    /// Returns the upstream of a request; `nil` if requests for its host are not forwarded.
    func upstream(for rule: UpstreamRule) -> Upstream? {
        let place = rule.index ?? used.count - 1
        return used[place] ?? make(at: place)
    }

    /// Returns the upstream whose connections are used at this place; `nil` if it has had no request.
    func present(at place: Int) -> Upstream? { used[place] ?? former[place] }

    private func make(at place: Int) -> Upstream? {
        let isUnmatched = place == used.count - 1
        guard !isUnmatched || settings.unmatched == .forward else { return nil }
        let rule = isUnmatched ? .unmatched : plan.upstreams.rules[place]
        let trustAnchors = plan.configuration.trustAnchorsFile
        var options = PoolOptions(upstream: rule.settings, trustAnchors: trustAnchors)
        options.addressPolicy.own = plan.shared.own
        options.counts = metrics.of(place).connections
        options.material = plan.shared.material(rule.settings.tls, trustAnchors)
        if isUnmatched {
            options.addressPolicy.publicOnly = true
            options.addressPolicy.exceptions = settings.privateNetworks
        }
        let upstream = Upstream(
            rule, client: isUnmatched ? nil : plan.upstreams.clients[place],
            fixed: isUnmatched ? [] : plan.fixed[place], options: options, streams: streams, former: former[place])
        former[place] = nil
        used[place] = upstream
        return upstream
    }

    /// Takes the connections of unchanged upstreams over.
    func takeOver(_ replaced: InstalledPlan) {
        guard replaced.plan.configuration.trustAnchorsFile == plan.configuration.trustAnchorsFile else { return }
        for (place, old) in plan.upstreams.former.enumerated() {
            if let old { former[place] = replaced.present(at: old) }
        }
        for case .some(let old) in plan.upstreams.former { replaced.former[old] = nil }
        if replaced.settings.privateNetworks == settings.privateNetworks, settings.unmatched == .forward {
            former[used.count - 1] = replaced.present(at: replaced.used.count - 1)
            replaced.former[replaced.used.count - 1] = nil
        }
        for upstream in former { upstream?.hasSuccessor = true }
    }

    /// Wipes the copies of a client's token.
    func forgetCredentials(of client: Heimdallr) {
        for place in plan.upstreams.places(of: client) {
            used[place]?.injected.forgetToken()
            former[place]?.injected.forgetToken()
        }
    }

    deinit {
        whenOver?()
        // The plan has thousands of objects, and these rules may be the last that use them.
        Task.detached { [plan] in
            try? await Task.sleep(for: .seconds(1))
            withExtendedLifetime(plan) {}
        }
    }

    /// Returns the routes of an intercepted host; `nil` for any other host.
    func intercepted(_ authority: Authority) -> RouteTable.Candidates? {
        plan.routes.candidates(for: authority, scheme: .https).flatMap { $0.intercepts ? $0 : nil }
    }

    var headerTimeout: Timeout { Timeout(settings.headerTimeout) }

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

    func slot(_ rule: UpstreamRule?, isConnect: Bool) -> Int {
        if let rule { return rule.index ?? layout.unmatched }
        return isConnect && tunnels != nil ? layout.tunnels : layout.noUpstream
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
        guard underWay == 0, whenOver != nil else { return }
        guard released == 0 else { return release() }
        guard used.allSatisfy({ $0?.isQuiet ?? true }), former.allSatisfy({ $0?.hasQuietConnections ?? true })
        else {
            timer?.schedule(after: Self.quietInterval)
            return
        }
        release()
    }

    /// Releases some upstreams in each turn, then ends.
    private func release() {
        var left = Self.releaseStride
        while released < used.count, left > 0 {
            if present(at: released) != nil { left -= 1 }
            used[released] = nil
            former[released] = nil
            released += 1
        }
        guard released == used.count else {
            timer?.schedule(after: .zero)
            return
        }
        let done = whenOver
        whenOver = nil
        tunnels = nil
        done?()
    }
}
