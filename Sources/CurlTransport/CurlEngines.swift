import Reactor

/// The engines and scopes of one event loop. They are made for a connection, and go when they have been idle: an engine
/// needs as much memory as a hundred clients or upstreams. Loop's thread only.
final class CurlEngines {
    /// Time that a scope stays after its last connection, so that the next connection can resume its TLS session.
    var restTime = Duration.seconds(300)
    /// Number of scopes that stay without a connection. Those used last stay.
    static let mostResting = 32

    /// Trust anchors that clients have in common, and so may share an engine: libcurl keeps the parsed anchors.
    private struct Trust: Hashable {
        let anchors: PoolOptions.TrustAnchors
        /// Replaceable content of the files; `nil` for the system's anchors.
        let material: ObjectIdentifier?
        /// Version of the files and of the system's anchors.
        let generation: UInt64
    }

    private struct Shared {
        weak var engine: CurlEngine?
        /// Keeps the identifier in the key unique.
        let material: TLSMaterial?
    }

    private unowned let loop: EventLoop
    private var shared: [Trust: Shared] = [:]
    /// Scopes in the order of their last use, the oldest first.
    private var recent: [(scope: CurlScope, since: LoopTime)] = []
    /// Scopes that are released at the end of the turn, because one of their engines may be running now.
    private var leaving: [CurlScope] = []
    private var timer: LoopTimer?

    private init(_ loop: EventLoop) {
        self.loop = loop
        timer = LoopTimer(on: loop) { [unowned self] in expire() }
    }

    static func of(_ loop: EventLoop) -> CurlEngines { loop.resident { CurlEngines(loop) } }

    /// Number of engines that clients share.
    var sharedCount: Int { shared.values.count { $0.engine != nil } }
    /// Number of scopes in use or at rest.
    var recentCount: Int { recent.count }

    /// Makes the scope of one client. Clients with the same trust anchors share an engine, because each of their calls
    /// has a new connection, which no other call can get.
    func scopeOfCalls(_ options: PoolOptions) throws(TransportError) -> CurlScope {
        let material = options.trustAnchors == .system ? nil : options.material
        let trust = Trust(
            anchors: options.trustAnchors, material: material.map { ObjectIdentifier($0) },
            generation: (material?.generation ?? 0) &+ SystemAuthorities.shared.generation)
        let engine: CurlEngine
        if let present = shared[trust]?.engine {
            engine = present
        } else {
            // No connection is kept, and each client limits its calls.
            engine = try CurlEngine(keeping: 1, on: loop)
            shared = shared.filter { $0.value.engine != nil }
            shared[trust] = Shared(engine: engine, material: material)
        }
        return try add(
            CurlScope(engine, options.trustGeneration, maxCalls: options.maxConnections, among: self))
    }

    /// Makes the scope of one pool. Its engine is separate: libcurl searches all connections of an engine at each
    /// reading and writing.
    func scopeOfConnections(_ options: PoolOptions) throws(TransportError) -> CurlScope {
        // libcurl counts the connections of carriers, too. The reserve keeps libcurl from closing these connections.
        let engine = try CurlEngine(keeping: options.maxConnections + 16, on: loop)
        return try add(CurlScope(engine, options.trustGeneration, maxCalls: 0, among: self))
    }

    private func add(_ scope: CurlScope) -> CurlScope {
        used(scope)
        return scope
    }

    /// Keeps a scope from now on for `restTime`, unless many others are used after it.
    func used(_ scope: CurlScope) {
        recent.removeAll { $0.scope === scope }
        recent.append((scope, loop.now))
        if recent.count > Self.mostResting { leave(recent.removeFirst().scope) }
        if recent.count == 1 { timer?.schedule(at: loop.now + restTime) }
    }

    func forget(_ scope: CurlScope) {
        recent.removeAll { $0.scope === scope }
        leave(scope)
    }

    private func leave(_ scope: CurlScope) {
        leaving.append(scope)
        if leaving.count == 1 { loop.atTurnEnd(self) }
    }

    private func expire() {
        while let first = recent.first, first.since + restTime <= loop.now { leave(recent.removeFirst().scope) }
        if let first = recent.first { timer?.schedule(at: first.since + restTime) }
    }
}

extension CurlEngines: TurnEndHandler {
    func turnEnded() { leaving = [] }
}
