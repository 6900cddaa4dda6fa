import Configuration
import CurlTransport
import HTTPMessage
import Heimdallr
import Reactor

/// Everything of the proxy that lives on one loop: its listeners, clients, and connections upstream.
final class ProxyShard {
    let loop: EventLoop
    let settings: ProxySettings
    let headerTimeout: Timeout
    let idleTimeout: Timeout
    let observer: ProxyObserver
    let routes: RouteTable
    /// `nil`: nobody has to say who they are.
    let users: UserDirectory?
    private(set) var upstreams: [Upstream] = []
    private(set) var unmatched: Upstream?
    /// `nil`: CONNECT is refused.
    let tunnels: Tunnels?
    private(set) var isDraining = false
    /// Requests that the program gave no name are counted from here.
    let requestsBegin = UInt32.random(in: .min ... .max)
    private var requestCount: UInt64 = 0
    /// Exchanges with upstreams.
    let rack: ExchangeRack

    /// Upstreams' own.
    private var baseURLs: [UpstreamListener] = []
    private(set) var acceptors: [Acceptor] = []
    private(set) var connections: [ObjectIdentifier: ClientConnection] = [:]
    /// At most so many connections at once.
    let places: Int
    var room = Room()
    var roomTimer: LoopTimer?
    /// Connections whose wrong password is not refused yet, by where they come from.
    var heldGuesses: [String: Int] = [:]
    let metrics: ProxyMetrics
    private let layout: MetricsLayout
    private var whenEmpty: (() -> Void)?
    private var sweep: LoopTimer?
    private var nextSweep = LoopTime(nanoseconds: .max)
    /// Shortest time between two looks at the clients' deadlines.
    private static let sweepInterval = Duration.milliseconds(50)

    // The authority that was asked for last: programs ask for the same one again and again.
    private var lastAuthority: [UInt8] = []
    private var lastScheme = Scheme.http
    private var lastKnown: KnownAuthority?

    struct KnownAuthority {
        let authority: Authority
        /// `nil`: no upstream names it.
        let rules: RouteTable.Rules?
    }

    init(_ plan: ProxyPlan, listeners: [ProxyPlan.Listener], loop: EventLoop) throws {
        self.loop = loop
        rack = ExchangeRack(loop: loop)
        settings = plan.configuration.proxy
        headerTimeout = Timeout(settings.headerTimeout)
        idleTimeout = Timeout(settings.idleTimeout)
        observer = plan.observer
        layout = plan.layout
        metrics = ProxyMetrics(slots: plan.layout.slots)
        routes = plan.routes
        users = plan.users
        places = max(1, ProxyServer.places(settings) / max(1, settings.threads))
        let own = plan.own
        tunnels = try Tunnels(settings, own: own, loop: loop)
        let anchors = plan.configuration.trustAnchorsFile
        for (index, upstream) in plan.configuration.upstreams.enumerated() {
            upstreams.append(
                try Upstream(
                    upstream, index: index, client: upstream.client.flatMap { plan.clients[$0] }, trustAnchors: anchors,
                    own: own,
                    loop: loop))
        }
        if settings.unmatched == .forward {
            unmatched = try Upstream(unmatched: settings, trustAnchors: anchors, own: own, loop: loop)
        }
        sweep = LoopTimer(on: loop) { [unowned self] in sweepDeadlines() }
        roomTimer = LoopTimer(on: loop) { [unowned self] in makeRoom() }
        for listener in listeners {
            let role: ListenerRole
            if let index = listener.upstream {
                let own = UpstreamListener(
                    plan.configuration.upstreams[index], index: index, own: listener.socket.address)
                baseURLs.append(own)
                role = .upstream(own)
            } else {
                role = .forward(listener.address.place)
            }
            acceptors.append(
                try Acceptor(
                    listener.socket, on: loop, accepted: { [unowned self] in accepted($0, role) },
                    failed: { [unowned self] in acceptFailed($0) }))
        }
    }

    // MARK: Clients

    private func accepted(_ socket: StreamSocket, _ role: ListenerRole) {
        let connection = ClientConnection(socket, role: role, shard: self)
        do throws(SystemError) {
            try socket.register(connection)
        } catch {
            acceptFailed(error)
            return
        }
        connections[ObjectIdentifier(connection)] = connection
        if connections.count >= places {
            for acceptor in acceptors { acceptor.pause() }
            roomTimer?.schedule(after: Room.interval)
        }
    }

    func connectionEnded(_ connection: ClientConnection) {
        connections[ObjectIdentifier(connection)] = nil
        if isDraining {
            if connections.isEmpty { finishDraining() }
        } else if connections.count == places - 1 {
            for acceptor in acceptors { acceptor.resume() }
        }
    }

    func requestStarted() { metrics.requestStarted() }

    func nextRequestNumber() -> UInt64 {
        requestCount &+= 1
        return requestCount
    }

    func requestEnded(_ connection: ClientConnection) {
        let slot = slot(of: connection)
        metrics.requestEnded(
            slot: slot, status: connection.status, duration: loop.now.nanoseconds &- connection.started.nanoseconds,
            sent: UInt64(connection.body.taken),
            received: connection.exchange.isAnswered && !connection.exchange.isSwitched ? connection.bytesSent : 0,
            injection: connection.injection, isOwn: connection.refusal != nil && !connection.isSent)
        if let accessLog = observer.accessLog { accessLog(connection.accessRecord) }
    }

    private func slot(of connection: ClientConnection) -> Int {
        if let upstream = connection.upstream { return upstream.index ?? layout.unmatched }
        return connection.head.methodKind == .connect && tunnels != nil ? layout.tunnels : layout.none
    }

    /// Bytes went through a tunnel or an upgraded connection: counted as they go, since it may stay for days.
    func bytesPassed(_ connection: ClientConnection, sent: UInt64 = 0, received: UInt64 = 0) {
        metrics.moved(slot: slot(of: connection), sent: sent, received: received)
    }

    // MARK: Routing

    /// Reads an authority and looks its rules up.
    func authority(of bytes: Span<UInt8>, _ scheme: Scheme) throws(Problem) -> KnownAuthority {
        if let lastKnown, lastScheme == scheme, bytes.elementsEqual(lastAuthority) { return lastKnown }
        let authority: Authority
        do throws(MessageError) {
            authority = try Authority(parsing: bytes)
        } catch {
            throw Problem(error)
        }
        let known = KnownAuthority(authority: authority, rules: routes.rules(for: authority, scheme: scheme))
        lastAuthority = []
        for index in bytes.indices { lastAuthority.append(bytes[index]) }
        lastScheme = scheme
        lastKnown = known
        return known
    }

    /// The upstream's own listener that is at this address.
    func listener(at authority: Authority) -> UpstreamListener? { baseURLs.first { $0.isAt(authority) } }

    // MARK: Deadlines

    /// A client has a new deadline. They are looked at together: a request moves its client's several times, and that
    /// must cost nothing.
    func noteDeadline(_ deadline: LoopTime) {
        guard deadline < nextSweep else { return }
        nextSweep = max(deadline, loop.now + Self.sweepInterval)
        sweep?.schedule(at: nextSweep)
    }

    private func sweepDeadlines() {
        nextSweep = LoopTime(nanoseconds: .max)
        let now = loop.now
        var next = LoopTime(nanoseconds: .max)
        for connection in connections.values {
            if connection.deadline <= now {
                connection.deadlinePassed()
            }
            if connection.deadline < next { next = connection.deadline }
        }
        if next.nanoseconds != .max { noteDeadline(next) }
    }

    // MARK: Stopping

    /// Stops accepting, lets requests finish; `done` is called when the last client is gone.
    func drain(_ done: @escaping () -> Void) {
        isDraining = true
        whenEmpty = done
        for acceptor in acceptors { acceptor.close() }
        acceptors = []
        for connection in connections.values { connection.drain() }
        if connections.isEmpty { finishDraining() }
    }

    /// Ends what is still there.
    func stop() {
        for connection in connections.values { connection.hangUp() }
        if connections.isEmpty { finishDraining() }
    }

    private func finishDraining() {
        let done = whenEmpty
        whenEmpty = nil
        done?()
    }
}
