import Administration
import Heimdallr
import SharedStore

/// One proxy of the fleet: its clients, its callers, its reloads and its restarts.
final class Replica: @unchecked Sendable {
    struct Slot {
        let heimdallr: Heimdallr
        let store: ClientStore
        let server: Authority
    }

    let number: Int
    unowned let world: World
    private(set) var process: Process
    private(set) var authority = 0
    private(set) var isAway = true
    /// Stopped by the operator, and not to be started.
    private(set) var isHalted = false
    private var incarnation = 0
    private var timeout: Duration
    private(set) var slots: [Slot] = []
    /// Of former configurations: requests may use their tokens, and their records may be unsaved.
    private var leavingSlots: [Slot] = []
    /// Sign-ins under way.
    private(set) var logins = PendingLogins()
    /// When a caller of a client last got a token.
    private var served: [Int: ContinuousClock.Instant] = [:]
    /// Until when a resource refuses a client's tokens.
    private var refusedUntil: [Int: ContinuousClock.Instant] = [:]
    private var shared: any OAuthAccessTokenStore
    private var lastReload: Task<Void, Never>?

    init(_ number: Int, _ world: World) {
        self.number = number
        self.world = world
        timeout = world.plan.timeout
        process = Process(number, 0, world, usesFiles: world.usesFiles)
        process.die()
        shared = OAuthAccessTokenMemoryStore()
    }

    static func name(_ client: Int) -> String { "c\(client)" }
    var server: Authority { world.authorities[authority] }

    // MARK: Its life

    /// - Parameter usesFiles: its configuration; `nil`: that of all replicas.
    func start(usesFiles: Bool? = nil) {
        guard process.isDead, !isHalted, !world.hasEnded else { return }
        incarnation += 1
        lastReload = nil
        leavingSlots = []
        let process = Process(number, incarnation, world, usesFiles: usesFiles ?? world.usesFiles)
        self.process = process
        let store = SimulatedStore(process, isInFiles: process.usesFiles)
        Task {
            do {
                try await store.prepare()
                if process.usesFiles != world.usesFiles {
                    world.fail("\(process) starts on a store that was left by a move")
                }
            } catch let error as TokenStoreError where error.kind == .misconfigured {
                world.log("\(process) does not start: \(error)")
                return process.die()
            } catch { world.log("\(process) starts without its store") }
            if isHalted { process.die() }
            if !process.isDead { serve(store) }
        }
    }

    private func serve(_ store: SimulatedStore) {
        isAway = false
        process.isConnected = true
        shared = store
        logins = PendingLogins(
            shared: process.usesFiles ? nil : ModelPendingLogins(database: world.database, process: process),
            clients: { [weak self, process] in
                guard let self, self.process === process else { return [] }
                return slots.map(\.heimdallr)
            }, clock: process.clock)
        slots = (0..<world.plan.clients).map { make($0, isHeld: false) }
        for slot in slots { slot.heimdallr.start() }
        call(process)
    }

    private func make(_ client: Int, isHeld: Bool) -> Slot {
        let store = ClientStore(shared, isHeld: isHeld)
        let name = Self.name(client)
        var configuration = HeimdallrConfiguration(tokenEndpoint: "\(server.address)/token")
        configuration.authorizationEndpoint = "\(server.address)/authorize"
        configuration.deviceAuthorizationEndpoint = "\(server.address)/device"
        configuration.revocationEndpoint = "\(server.address)/revoke"
        configuration.allowDeprecated = true
        configuration.timeout = timeout
        let grant: any OAuthAuthorizationGrant =
            switch world.plan.kinds[client] {
            case .password: InteractiveGrant(.password)
            case .browser: InteractiveGrant(.browser)
            case .device: InteractiveGrant(.device)
            case .credentials: ClientCredentialsGrant()
            case .exchange: TokenExchangeGrant(subject: .caller())
            }
        do {
            let heimdallr = try Heimdallr(
                name: name, configuration: configuration,
                credentials: OAuthClientSecretCredentials(
                    identifier: name, secret: Secret(server.secret(of: name)), method: .post), grant: grant,
                httpClient: SimulatedHTTPClient(process, name), store: store,
                limiter: TokenRequestLimiter(clock: process.clock), clock: process.clock)
            return Slot(heimdallr: heimdallr, store: store, server: server)
        } catch {
            fatalError("\(error)")
        }
    }

    func kill(startingAfter pause: Duration) {
        guard !isAway else { return }
        isAway = true
        process.die()
        world.database.drop(process)
        end(slots)
        Scheduler.shared.after(pause) { [self] in start() }
    }

    /// As SIGTERM does it, and a new process after it.
    func restart(authority next: Int? = nil) {
        guard !isAway else {
            authority = next ?? authority
            return
        }
        // A proxy that stops lets a reload end first.
        if let lastReload {
            Task { [self] in
                await lastReload.value
                self.lastReload = nil
                restart(authority: next)
            }
            return
        }
        isAway = true
        let (old, leaving) = (slots + leavingSlots, process)
        Task { [self] in
            await withDiscardingTaskGroup { group in
                for slot in old { group.addTask { await slot.heimdallr.drain(within: .seconds(10)) } }
            }
            end(old)
            try? await leaving.sleep(for: .milliseconds(20))
            leaving.die()
            world.database.drop(leaving)
            authority = next ?? authority
            start()
        }
    }

    func halt() async throws {
        isHalted = true
        restart()
        while !process.isDead { try await world.pause(50...50) }
    }

    func release(usesFiles: Bool) {
        isHalted = false
        start(usesFiles: usesFiles)
    }

    /// As a reload of the proxy does it, client by client.
    func reload(changes: Bool = true, authority next: Int? = nil) {
        guard !isAway, changes else { return }
        // One at a time, as `ReloadQueue` has it.
        if let lastReload {
            Task { [self] in
                await lastReload.value
                self.lastReload = nil
                reload(authority: next)
            }
            return
        }
        if let next { authority = next }
        timeout = timeout == world.plan.timeout ? timeout + .seconds(1) : world.plan.timeout
        let (old, leaving, limit) = (slots, process, timeout * 2 + .seconds(10))
        slots = (0..<world.plan.clients).map { make($0, isHeld: true) }
        let (made, leavingSlots) = (slots, leavingSlots)
        self.leavingSlots += old
        let over = Task {
            await withDiscardingTaskGroup { group in
                for (former, next) in zip(old, made) {
                    let former = [former] + leavingSlots.filter { $0.heimdallr.name == next.heimdallr.name }
                    group.addTask {
                        var unsaved: TokenRecord?
                        for former in former where !former.store.isRetired {
                            let isSame = former.server === next.server
                            if isSame { next.heimdallr.takeOverCallers(of: former.heimdallr) }
                            let record = await former.heimdallr.handOver(within: limit)
                            guard isSame else { continue }
                            former.store.retire()
                            if let record, record.revision > unsaved?.revision ?? 0 { unsaved = record }
                        }
                        next.store.open()
                        next.heimdallr.start(inheriting: unsaved)
                    }
                }
            }
        }
        lastReload = over
        Task { [self] in
            await over.value
            if process === leaving { lastReload = nil }
            try? await leaving.sleep(for: .seconds(2))
            await withDiscardingTaskGroup { group in
                for former in old { group.addTask { await self.release(former, leaving) } }
            }
        }
    }

    private func release(_ former: Slot, _ process: Process) async {
        await former.heimdallr.drain(within: .seconds(10))
        while former.heimdallr.hasUnsavedRecord, !former.store.isRetired, !process.isDead {
            guard (try? await process.sleep(for: .seconds(1))) != nil else { break }
        }
        former.heimdallr.shutdown()
        leavingSlots.removeAll { $0.heimdallr === former.heimdallr }
    }

    func end() {
        process.die()
        end(slots)
    }

    private func end(_ slots: [Slot]) {
        logins.close()
        for slot in slots { slot.heimdallr.shutdown() }
    }

    // MARK: Its callers

    /// Callers come as long as the process lives.
    private func call(_ process: Process) {
        for client in 0..<world.plan.clients {
            Task { [self] in
                while !process.isDead, !isOver {
                    do { try await process.sleep(for: .milliseconds(Scheduler.shared.chance.within(200...2500))) } catch
                    {
                        return
                    }
                    guard process === self.process, !isAway, !isOver else { continue }
                    await request(client, process)
                }
            }
        }
    }

    private func request(_ client: Int, _ process: Process) async {
        let (slot, name, began) = (slots[client], Self.name(client), world.now)
        guard let (used, caller) = holder(client, slot) else { return }
        let deadline = began + World.tokenWait
        var token = try? await used.accessToken(before: deadline)
        if let first = token, let until = refusedUntil[client] {
            token = await refuse(first, used, deadline, until)
        } else if let token {
            used.accepted(token, by: "a resource", isReplay: false)
        }
        if let token, (try? await process.pass()) != nil, let now = used.currentToken(), now.value == token.value {
            served[client] = world.now
            world.served(
                now.value.revealed, name, caller, slot.server, at: process,
                isStored: caller == nil && used.status().storeFault == nil)
        }
        judgeWait(since: began, client, process)
    }

    /// The client that has the token, and the token that its caller brings.
    private func holder(_ client: Int, _ slot: Slot) -> (Heimdallr, String?)? {
        guard world.plan.kinds[client] == .exchange else { return (slot.heimdallr, nil) }
        let caller = slot.server.callerToken(Scheduler.shared.chance.below(3), for: Self.name(client))
        let bytes = Array(caller.utf8)
        return (try? slot.heimdallr.client(of: bytes.span)).map { ($0, caller) }
    }

    private func judgeWait(since began: ContinuousClock.Instant, _ client: Int, _ process: Process) {
        if began.duration(to: world.now) > World.tokenWait + .seconds(1), process.absence(since: began) == .zero {
            world.fail("a caller of \(Self.name(client)) waited past its time at \(process)")
        }
    }

    private var isOver: Bool { world.failure != nil || world.isQuiet }

    /// Callers wait, and go.
    func leave(_ client: Int) {
        guard !isAway, let (used, _) = holder(client, slots[client]) else { return }
        let process = process
        used.invalidateAccessToken()
        for _ in 0..<3 {
            let caller = Task { [world] in try await used.accessToken(before: world.now + World.tokenWait) }
            Task { [self] in
                try? await process.sleep(for: .milliseconds(Scheduler.shared.chance.within(0...200)))
                caller.cancel()
                let left = world.now
                _ = await caller.result
                if world.now > left { world.fail("a caller of \(Self.name(client)) waited on after it had left") }
            }
        }
    }

    func refresh(_ client: Int) { slots[client].heimdallr.refreshNow() }

    // MARK: Suspect tokens

    func refuse(_ client: Int, for time: Duration) { refusedUntil[client] = world.now + time }

    /// One request with `token` to a resource that answers 401 until then, and the second one with a newer token (rule 7).
    private func refuse(
        _ token: AccessToken, _ used: Heimdallr, _ deadline: ContinuousClock.Instant, _ until: ContinuousClock.Instant
    ) async -> AccessToken? {
        let resource = "another resource"
        guard world.now < until else {
            used.accepted(token, by: resource, isReplay: false)
            return token
        }
        guard used.refused(token, by: resource, saysInvalid: Scheduler.shared.chance.once(in: 2), isReplay: false)
        else {
            return nil
        }
        guard let newer = try? await used.accessToken(for: resource, insteadOf: token, before: deadline) else {
            return nil
        }
        if newer.value == token.value { world.fail("a resource that refused a token gets the same again: not good") }
        if world.now < until {
            _ = used.refused(newer, by: resource, saysInvalid: true, isReplay: true)
        } else {
            used.accepted(newer, by: resource, isReplay: true)
        }
        return newer
    }

    func lastServed(_ client: Int) -> ContinuousClock.Instant { served[client] ?? Scheduler.shared.start }

    func wasRefused(_ client: Int) -> Bool {
        if case .clientRefused = slots[client].heimdallr.status().lastError { true } else { false }
    }

    func status(_ client: Int) -> String { "\(slots[client].heimdallr.status())" }
}
