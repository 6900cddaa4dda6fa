import CLibcurl
import Reactor

/// Connections to the peers of one security domain: at most `maxConnections`, with idle ones. The latest used serves
/// first. Loop's thread only; it must outlive its users.
public final class CarrierPool {
    public let options: PoolOptions
    private let loop: EventLoop
    private let maxAge: UInt64
    /// Made for the first dial.
    private var engine: CurlEngine?
    private var groups: [Origin: OriginCarriers] = [:]
    /// Most upstreams have one origin.
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
    /// Within `dial`, which throws errors of its synchronous part.
    private var isSettingOut = false
    private var setOutFailure: TransportError?
    private var queueTimer: LoopTimer?
    private var ageTimer: LoopTimer?
    private var isAgeing = false

    public init(options: PoolOptions, loop: EventLoop) {
        self.options = options
        self.loop = loop
        maxAge = UInt64(max(0, options.maxConnectionAge.wholeNanoseconds))
        queueTimer = LoopTimer(on: loop) { [unowned self] in expireQueue() }
        ageTimer = LoopTimer(on: loop) { [unowned self] in closeAged() }
    }

    deinit { while let carrier = carriers.last { close(carrier) } }

    /// Gets a connection for `owner`: an idle one at once. Otherwise dials one, when `maxConnections` allows it, and
    /// tells the owner within `connectTimeout`.
    /// - Parameters:
    ///   - request: belongs to the owner; must not be pending.
    ///   - fresh: requires a new connection, after a kept-alive one died.
    ///   - use: the use of the connection. Any but `exchanges` also requires a new one.
    public func connect(
        to origin: Origin, for owner: any CarrierOwner, _ request: CarrierRequest, fresh: Bool = false,
        use: CarrierUse = .exchanges
    ) throws(TransportError) -> Carrier? {
        precondition(!request.isPending)
        let isFresh = fresh || use != .exchanges
        if !isFresh, queue.isEmpty, let carrier = takeIdle(origin) {
            carrier.use(by: owner)
            return carrier
        }
        request.begin(origin, isFresh: isFresh, use: use, deadline: loop.now + options.connectTimeout)
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

    /// Number of connections, with those that are not ready yet.
    public var open: Int { carriers.count }
    /// Number of idle connections, including resting ones.
    public var idle: Int { carriers.count { $0.isAtRest } }
    /// Whether all connections are idle and no request waits.
    public var isQuiet: Bool { queue.isEmpty && carriers.allSatisfy { $0.isAtRest } }
    public var waiting: Int { queue.count }
    /// Number of connections that have to end before every wanted request in the queue gets one.
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
            if isYoung(carrier) {
                if carrier.isReused { options.counts?.countReused() }
                return carrier
            }
            close(carrier)
        }
        return nil
    }

    func isYoung(_ carrier: Carrier) -> Bool {
        loop.now < carrier.membership.opened.advanced(by: maxAge)
            && carrier.membership.generation == options.material?.generation ?? 0
    }

    /// Takes back a connection that can serve again.
    func keep(_ carrier: Carrier) {
        guard isYoung(carrier) else { return close(carrier) }
        carrier.phase = .idle
        carrier.membership.idleSince = loop.now
        carrier.membership.siblings.idle.append(carrier)
        carrierIsIdle()
        guard !isAgeing else { return }
        isAgeing = true
        ageTimer?.schedule(at: carrier.membership.opened + options.maxConnectionAge)
    }

    /// Serves the queue, which may close this idle connection.
    func carrierIsIdle() { if !queue.isEmpty { serveLater() } }

    private func closeAged() {
        isAgeing = false
        var next: LoopTime?
        for carrier in carriers where carrier.phase == .idle {
            if isYoung(carrier) {
                let end = carrier.membership.opened + options.maxConnectionAge
                next = min(next ?? end, end)
            } else {
                close(carrier)
            }
        }
        guard let next else { return }
        isAgeing = true
        ageTimer?.schedule(at: next)
    }

    /// - Returns: whether another connection may be made. Closes the one idle longest if needed.
    private func makeRoom() -> Bool {
        if carriers.count < options.maxConnections { return true }
        let idle = carriers.filter { $0.isAtRest }
        guard let oldest = idle.min(by: { $0.membership.idleSince < $1.membership.idleSince }) else { return false }
        oldest.giveUp()
        return carriers.count < options.maxConnections
    }

    // MARK: Dialling

    /// Begins to make a connection. Calls no owner from within.
    private func dial(_ request: CarrierRequest) throws(TransportError) {
        let engine = try startEngine()
        let group = groups[request.origin] ?? OriginCarriers(request.origin)
        let hop = try NextHop(options.nextProxy, to: request.origin, tunnels: request.use.tunnels)
        let carrier = try Carrier(
            pool: self, engine: engine, request: request, hop: hop, siblings: group, now: loop.now)
        if request.use == .tunnel { carrier.forbidReuse() }
        groups[request.origin] = group
        group.open += 1
        carrier.membership.index = carriers.count
        carriers.append(carrier)
        request.state = .dialling(carrier)
        isSettingOut = true
        defer { isSettingOut = false }
        carrier.dial(before: request.deadline) { [unowned self, unowned carrier] in dialled(carrier, $0) }
        guard let error = setOutFailure else { return }
        setOutFailure = nil
        throw error
    }

    private func startEngine() throws(TransportError) -> CurlEngine {
        if let engine { return engine }
        // libcurl also counts carriers.
        let engine = try CurlEngine(keeping: options.maxConnections + 16, on: loop)
        self.engine = engine
        return engine
    }

    /// - Parameter failure: `nil` for success.
    func dialled(_ carrier: Carrier, _ failure: TransportError?) {
        guard carrier.phase == .dialling, let request = carrier.request else { return }
        if isSettingOut {
            setOutFailure = failure
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
            carrier.use(by: owner)
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

    func leave(_ request: CarrierRequest) { queue.removeAll { $0 === request } }

    /// Serves the queue at the turn's end: the current caller is not finished.
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
            if !first.isFresh, let carrier = takeIdle(first.origin) {
                queue.remove(at: index)
                guard let owner = first.finish() else { continue }
                carrier.use(by: owner)
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
