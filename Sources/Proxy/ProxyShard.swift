import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor

/// Everything of the proxy that lives on one loop: its clients, its rules, and its connections upstream.
final class ProxyShard {
    let loop: EventLoop
    let settings: ProxySettings
    let idleTimeout: Timeout
    let observer: ProxyObserver
    var gate: Gate
    /// `nil`: nobody has to say who they are.
    let users: UserDirectory?
    private(set) var upstreams: [Upstream] = []
    private let unmatched: Upstream?
    /// `nil`: CONNECT is refused.
    let tunnels: Tunnels?
    private(set) var metrics: ProxyMetrics
    private let layout: MetricsLayout
    private var server: ServerLoop?
    /// Requests that the program gave no name are counted from here.
    let requestsBegin = UInt32.random(in: .min ... .max)
    private var requestCount: UInt64 = 0
    /// Connections whose wrong password is not refused yet, by where they come from.
    var heldGuesses: [String: Int] = [:]

    init(_ plan: ProxyPlan, listeners: [ProxyPlan.Listener], loop: EventLoop) throws {
        self.loop = loop
        let configuration = plan.configuration
        settings = configuration.proxy
        idleTimeout = Timeout(settings.idleTimeout)
        observer = plan.observer
        layout = plan.layout
        metrics = ProxyMetrics(slots: plan.layout.slots)
        users = plan.users
        let roles = listeners.map { ListenerRole($0, configuration) }
        gate = Gate(configuration, routes: plan.routes, users: plan.users, baseURLs: roles.compactMap(\.baseURL))
        let (own, anchors) = (plan.own, configuration.trustAnchorsFile)
        tunnels = try Tunnels(settings, own: own, loop: loop)
        let rack = ExchangeRack(loop: loop)
        unmatched =
            settings.unmatched == .forward
            ? Upstream(unmatched: settings, trustAnchors: anchors, own: own, rack: rack) : nil
        for rules in gate.upstreams {
            let client = rules.settings.client.flatMap { plan.clients[$0] }
            upstreams.append(
                try Upstream(
                    rules, client: client, fixed: plan.fixed[upstreams.count], trustAnchors: anchors, own: own,
                    rack: rack))
        }
        let server = ServerLoop(ServerSettings(settings), on: loop, acceptFailed: observer.acceptFailed) {
            [unowned self] connection in
            Forwarder(connection, role: roles[connection.listener], shard: self)
        }
        for (index, listener) in listeners.enumerated() { try server.listen(listener.socket, listener: index) }
        self.server = server
    }

    func upstream(for rules: UpstreamRules) -> Upstream? { rules.index.map { upstreams[$0] } ?? unmatched }

    // MARK: Requests

    func requestStarted() { metrics.requestStarted() }

    func nextRequestNumber() -> UInt64 {
        requestCount &+= 1
        return requestCount
    }

    func requestEnded(_ request: Forwarder) {
        let slot = slot(of: request)
        metrics.requestEnded(request.result(at: loop.now), slot: slot)
        if let accessLog = observer.accessLog { accessLog(request.accessRecord) }
    }

    private func slot(of request: Forwarder) -> Int {
        if let rules = request.current.admitted.rules { return rules.index ?? layout.unmatched }
        return request.connection.head.methodKind == .connect && tunnels != nil ? layout.tunnels : layout.none
    }

    /// Bytes went through a tunnel or an upgraded connection: counted as they go, since it may stay for days.
    func bytesPassed(_ request: Forwarder, sent: UInt64 = 0, received: UInt64 = 0) {
        metrics.moved(slot: slot(of: request), sent: sent, received: received)
    }

    // MARK: Stopping

    /// Stops accepting, lets requests finish; `done` is called when the last client is gone.
    func drain(_ done: @escaping () -> Void) {
        guard let server else { return done() }
        server.drain(done)
    }

    /// Ends what is still there.
    func stop() { server?.stop() }
}

extension ServerSettings {
    init(_ settings: ProxySettings) {
        self.init()
        headerTimeout = Timeout(settings.headerTimeout)
        idleTimeout = Timeout(settings.idleTimeout)
        maxHeaderBytes = settings.maxHeaderBytes
        maxConnections = max(1, ProxyServer.clientLimit(settings) / max(1, settings.threads))
    }
}
