import CLibcurl
import Reactor

/// A connection pool for the peers of one security domain: at most `maxConnections`, including idle connections. The
/// most recently used connection serves first. Loop's thread only. The pool must outlive its users.
public final class CarrierPool {
    public let options: PoolOptions
    private let loop: EventLoop
    private let maxAge: UInt64
    private let maxIdleTime: UInt64
    /// Scope of the connections, made for a dial. It goes when there has been no connection for a time.
    private let current = CurrentScope()
    private var groups: [Origin: OriginCarriers] = [:]
    /// The group used last. It saves most look-ups, because most upstreams have one origin.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var lastGroup: OriginCarriers?
    private var carriers: [Carrier] = []
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var queue: [CarrierRequest] = []
    private var isServing = false
    /// Whether `dial` is running. `dial` then throws each failure itself, and the owner gets no call.
    private var isStartingDial = false
    private var startFailure: TransportError?
    private var queueTimer: LoopTimer?
    private var ageTimer: LoopTimer?
    private var isAgeing = false

    public init(options: PoolOptions, loop: EventLoop) {
        self.options = options
        self.loop = loop
        maxAge = UInt64(max(0, options.maxConnectionAge.wholeNanoseconds))
        maxIdleTime = UInt64(max(0, options.maxIdleTime.wholeNanoseconds))
        queueTimer = LoopTimer(on: loop) { [unowned self] in expireQueue() }
        ageTimer = LoopTimer(on: loop) { [unowned self] in closeAged() }
    }

    deinit { while let carrier = carriers.last { close(carrier) } }

    /// Gets a connection for `owner`. Returns an idle connection at once. Otherwise returns `nil`, and calls the owner
    /// within `connectTimeout`: with a new connection, a connection that became idle, or an error.
    /// - Parameters:
    ///   - request: a request of the owner, which must not be pending.
    ///   - newConnection: requires a new connection, after a reused connection was stale.
    ///   - use: use of the connection. All uses but `exchanges` require a new connection.
    ///   - bond: may have a connection of its own.
    public func connect(
        to origin: Origin, for owner: any CarrierOwner, _ request: CarrierRequest, newConnection: Bool = false,
        use: CarrierUse = .exchanges, bond: CarrierBond? = nil
    ) throws(TransportError) -> Carrier? {
        precondition(!request.isPending)
        let isNew = newConnection || use != .exchanges
        if let bond, !isNew, let carrier = bond.take(origin, of: self) {
            if isFresh(carrier) {
                carrier.use(by: owner, loop.now)
                return carrier
            }
            close(carrier)
        }
        if !isNew, queue.isEmpty, let carrier = takeIdle(origin) {
            carrier.use(by: owner, loop.now)
            return carrier
        }
        request.begin(origin, needsNewConnection: isNew, use: use, deadline: loop.now + options.connectTimeout)
        request.owner = owner
        request.pool = self
        guard queue.isEmpty, makeRoom() else {
            request.state = .queued
            queue.append(request)
            if queue.count == 1 { queueTimer?.schedule(at: request.deadline) }
            return nil
        }
        do throws(TransportError) {
            try dial(request)
        } catch {
            _ = request.finish()
            throw error
        }
        return nil
    }

    var now: LoopTime { loop.now }

    /// Number of connections, including those being dialled.
    public var open: Int { carriers.count }
    /// Number of idle connections, including resting ones.
    public var idle: Int { carriers.count { $0.isAtRest } }
    /// Whether all connections are idle and no request waits.
    public var isQuiet: Bool { queue.isEmpty && carriers.allSatisfy { $0.isAtRest } }
    public var waiting: Int { queue.count }
    /// Number of connections that have to end before each queued request with a wanted owner can get a connection.
    public var shortage: Int {
        guard !queue.isEmpty else { return 0 }
        return max(0, queue.count { $0.owner?.isWanted == true } - (options.maxConnections - open + idle))
    }

    // MARK: Idle connections

    private func group(of origin: Origin) -> OriginCarriers? {
        if let lastGroup, lastGroup.origin == origin { return lastGroup }
        guard let group = groups[origin] else { return nil }
        lastGroup = group
        return group
    }

    private func takeIdle(_ origin: Origin) -> Carrier? {
        guard let group = group(of: origin) else { return nil }
        while let carrier = group.idle.popLast() {
            if isFresh(carrier) {
                if carrier.isReused { options.counts?.countReused() }
                return carrier
            }
            close(carrier)
        }
        return nil
    }

    func isYoung(_ carrier: Carrier) -> Bool {
        loop.now < carrier.membership.opened.advanced(by: maxAge)
            && carrier.membership.generation == options.trustGeneration
    }

    /// Whether an idle connection may serve now.
    private func isFresh(_ carrier: Carrier) -> Bool { isYoung(carrier) && loop.now < idleEnd(carrier) }

    private func idleEnd(_ carrier: Carrier) -> LoopTime {
        carrier.membership.idleSince.advanced(by: maxIdleTime)
    }

    /// Keeps a connection as idle, for all or for one bond. Closes a connection that is too old, or whose TLS material was
    /// replaced.
    func keep(_ carrier: Carrier, for bond: CarrierBond?) {
        guard isYoung(carrier), bond.map({ $0.keep(carrier) }) ?? true else { return close(carrier) }
        carrier.phase = .idle
        carrier.membership.idleSince = loop.now
        if bond == nil { carrier.membership.siblings.idle.append(carrier) }
        carrierIsIdle()
        guard !isAgeing else { return }
        isAgeing = true
        ageTimer?.schedule(at: min(carrier.membership.opened + options.maxConnectionAge, idleEnd(carrier)))
    }

    /// Closes the connections to the same origin that were idle before this one was used. They may be forgotten, too.
    func closeIdle(before carrier: Carrier) {
        for idle in carrier.membership.siblings.idle
        where idle.membership.idleSince < carrier.membership.busySince { close(idle) }
    }

    /// Serves the queue at the end of the turn, because a connection became idle. This may close the idle connection.
    func carrierIsIdle() { if !queue.isEmpty { serveLater() } }

    private func closeAged() {
        isAgeing = false
        var next: LoopTime?
        for carrier in carriers where carrier.phase == .idle {
            if isFresh(carrier) {
                let end = min(carrier.membership.opened + options.maxConnectionAge, idleEnd(carrier))
                next = min(next ?? end, end)
            } else {
                close(carrier)
            }
        }
        guard let next else { return }
        isAgeing = true
        ageTimer?.schedule(at: next)
    }

    /// Returns whether another connection may be made. If needed, closes the connection that was idle longest.
    private func makeRoom() -> Bool {
        if carriers.count < options.maxConnections { return true }
        let idle = carriers.filter { $0.isAtRest }
        guard let oldest = idle.min(by: { $0.membership.idleSince < $1.membership.idleSince }) else { return false }
        oldest.giveUp()
        return carriers.count < options.maxConnections
    }

    // MARK: Dialling

    /// Begins to dial. Calls no owner before it returns.
    private func dial(_ request: CarrierRequest) throws(TransportError) {
        let scope = try currentScope()
        let group = groups[request.origin] ?? OriginCarriers(request.origin)
        let hop = try NextHop(options.nextProxy, to: request.origin, tunnels: request.use.tunnels)
        let carrier = try Carrier(
            pool: self, scope: scope, request: request, hop: hop, siblings: group, now: loop.now)
        if request.use == .tunnel { carrier.forbidReuse() }
        groups[request.origin] = group
        group.open += 1
        carrier.membership.index = carriers.count
        carriers.append(carrier)
        request.state = .dialling(carrier)
        isStartingDial = true
        defer { isStartingDial = false }
        carrier.dial(before: request.deadline) { [unowned self, unowned carrier] in dialled(carrier, $0) }
        guard let error = startFailure else { return }
        startFailure = nil
        throw error
    }

    private func currentScope() throws(TransportError) -> CurlScope {
        try current.scope(options) { () throws(TransportError) in
            try CurlEngines.of(loop).scopeOfConnections(options)
        }
    }

    /// Ends a dial, and tells the request's owner its outcome. `failure` is `nil` for success.
    func dialled(_ carrier: Carrier, _ failure: TransportError?) {
        guard carrier.phase == .dialling, let request = carrier.request else { return }
        if isStartingDial {
            startFailure = failure
            return close(carrier)
        }
        var error = failure
        if error == nil { error = carrier.connect() }
        if error == nil, let counts = options.counts {
            counts.countOpened()
            counts.noteCertificate(end: carrier.certificateEnd)
        }
        let owner = request.finish()
        if let error {
            close(carrier)
            owner?.carrierFailed(error)
        } else if let owner {
            carrier.use(by: owner, loop.now)
            owner.carrierArrived(carrier)
        } else {
            close(carrier)
        }
    }

    func close(_ carrier: Carrier) {
        guard carrier.phase != .closed else { return }
        if carrier.phase == .idle { carrier.membership.siblings.idle.removeAll { $0 === carrier } }
        carrier.end()
        carrier.stop()
        let last = carriers.removeLast()
        if last !== carrier {
            carriers[carrier.membership.index] = last
            last.membership.index = carrier.membership.index
        }
        carrier.membership.siblings.open -= 1
        if carrier.membership.siblings.open == 0 {
            groups[carrier.origin] = nil
            if lastGroup === carrier.membership.siblings { lastGroup = nil }
        }
        if !queue.isEmpty { serveLater() }
    }

    // MARK: Waiting

    func leave(_ request: CarrierRequest) {
        // Requests mostly leave in the order in which they came, so the search is short however many wait.
        if let index = queue.firstIndex(where: { $0 === request }) { queue.remove(at: index) }
    }

    /// Serves the queue at the end of the turn, because the current caller has not finished.
    private func serveLater() {
        guard !isServing else { return }
        isServing = true
        loop.atTurnEnd(self)
    }

    private func expireQueue() {
        while let first = queue.first {
            guard first.deadline <= loop.now else {
                queueTimer?.schedule(at: first.deadline)
                return
            }
            queue.removeFirst()
            first.finish()?.carrierFailed(TransportError(.connectionLimit, message: "no connection became free"))
        }
    }
}

extension CarrierPool: TurnEndHandler {
    public func turnEnded() {
        isServing = false
        while !queue.isEmpty {
            let index = queue.firstIndex { $0.owner?.isWanted == true } ?? 0
            let first = queue[index]
            if !first.needsNewConnection, let carrier = takeIdle(first.origin) {
                queue.remove(at: index)
                guard let owner = first.finish() else { continue }
                carrier.use(by: owner, loop.now)
                owner.carrierArrived(carrier)
                continue
            }
            guard makeRoom() else { return }
            queue.remove(at: index)
            do throws(TransportError) {
                try dial(first)
            } catch {
                first.finish()?.carrierFailed(error)
            }
        }
    }
}
