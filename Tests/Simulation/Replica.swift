import Heimdallr

/// One proxy of the fleet: its clients, its callers, its reloads and its restarts.
final class Replica: @unchecked Sendable {
    private struct Slot {
        let heimdallr: Heimdallr
        let store: ClientStore
    }

    let number: Int
    unowned let world: World
    private(set) var process: Process
    private(set) var authority = 0
    private(set) var isAway = false
    private var incarnation = 0
    private var timeout: Duration
    private var slots: [Slot] = []
    /// When a caller of a client last got a token.
    private var served: [Int: ContinuousClock.Instant] = [:]
    private var shared: any OAuthAccessTokenStore
    private var lastReload: Task<Void, Never>?

    init(_ number: Int, _ world: World) {
        self.number = number
        self.world = world
        timeout = world.plan.timeout
        process = Process(number, 0, world)
        shared = OAuthAccessTokenMemoryStore()
    }

    static func name(_ client: Int) -> String { "c\(client)" }
    /// Most sign-ins are people's.
    static func wantsPerson(_ client: Int) -> Bool { client % 4 != 3 }

    // MARK: Its life

    func start() {
        guard let database = world.database else { return }
        incarnation += 1
        isAway = false
        lastReload = nil
        process = Process(number, incarnation, world)
        shared = MarkedTokenStore(
            ModelEngine(database: database, process: process), leaseTime: world.plan.leaseTime, patience: .seconds(30),
            holder: "\(process)", clock: process.clock)
        slots = (0..<world.plan.clients).map { make($0, isHeld: false) }
        for slot in slots { slot.heimdallr.start() }
        call(process)
    }

    private func make(_ client: Int, isHeld: Bool) -> Slot {
        let isPerson = Self.wantsPerson(client)
        let store = ClientStore(shared, isHeld: isHeld)
        var configuration = HeimdallrConfiguration(tokenEndpoint: world.authorities[authority].tokenEndpoint)
        configuration.allowDeprecated = true
        configuration.timeout = timeout
        let grant: any OAuthAuthorizationGrant = isPerson ? InteractiveGrant(.password) : ClientCredentialsGrant()
        do {
            let heimdallr = try Heimdallr(
                name: Self.name(client), configuration: configuration,
                credentials: OAuthClientSecretCredentials(identifier: "\(client)", secret: Secret("s")), grant: grant,
                httpClient: SimulatedHTTPClient(process: process, client: Self.name(client)), store: store,
                limiter: TokenRequestLimiter(clock: process.clock), clock: process.clock)
            return Slot(heimdallr: heimdallr, store: store)
        } catch {
            fatalError("\(error)")
        }
    }

    func kill(startingAfter pause: Duration) {
        guard !isAway else { return }
        isAway = true
        process.die()
        world.database?.drop(process)
        for slot in slots { slot.heimdallr.shutdown() }
        Scheduler.shared.after(pause) { [self] in start() }
    }

    /// As SIGTERM does it, and a new process after it.
    func restart(authority next: Int? = nil) {
        guard !isAway else { return }
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
        let (old, leaving) = (slots, process)
        Task { [self] in
            await withDiscardingTaskGroup { group in
                for slot in old { group.addTask { await slot.heimdallr.drain(within: .seconds(10)) } }
            }
            for slot in old { slot.heimdallr.shutdown() }
            try? await leaving.sleep(for: .milliseconds(20))
            leaving.die()
            world.database?.drop(leaving)
            if let next { authority = next }
            start()
        }
    }

    /// As a reload of the proxy does it, client by client.
    func reload(changes: Bool) {
        guard !isAway, changes else { return }
        // One at a time, as `ReloadDoor` has it.
        if let lastReload {
            Task { [self] in
                await lastReload.value
                self.lastReload = nil
                reload(changes: true)
            }
            return
        }
        timeout = timeout == world.plan.timeout ? timeout + .seconds(1) : world.plan.timeout
        let (old, leaving, limit) = (slots, process, timeout * 2 + .seconds(10))
        slots = (0..<world.plan.clients).map { make($0, isHeld: true) }
        let made = slots
        let over = Task {
            await withDiscardingTaskGroup { group in
                for (former, next) in zip(old, made) {
                    group.addTask {
                        let unsaved = await former.heimdallr.handOver(within: limit)
                        former.store.retire()
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
            for former in old {
                await former.heimdallr.drain(within: .seconds(10))
                former.heimdallr.shutdown()
            }
        }
    }

    func end() {
        process.die()
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
                    let (used, stood, began) = (slots[client].heimdallr, authority, world.now)
                    let wait = Duration.seconds(15)
                    if let token = try? await used.accessToken(before: began + wait),
                        (try? await process.pass()) != nil,
                        let now = used.currentToken(), now.value == token.value
                    {
                        served[client] = world.now
                        world.served(now.value.revealed, Self.name(client), stood, at: process)
                    }
                    if began.duration(to: world.now) > wait + .seconds(1), process.absence(since: began) == .zero {
                        world.fail("a caller of \(Self.name(client)) waited past its time at \(process)")
                    }
                }
            }
        }
    }

    private var isOver: Bool { world.failure != nil }

    func signIn(_ client: Int) {
        guard !isAway, Self.wantsPerson(client) else { return }
        let (slot, name, stood) = (slots[client], Self.name(client), authority)
        Task { [world] in
            do throws(LoginError) {
                try await slot.heimdallr.login(username: "somebody", password: Secret("p"))
                let token = try? await slot.heimdallr.accessToken(waiting: .seconds(5))
                world.log("signed in to \(name): \(token?.refreshToken?.revealed ?? "")")
                world.signedIn(name, stood, with: token?.refreshToken?.revealed)
            } catch {
                world.log("not signed in to \(name): \(error)")
            }
        }
    }

    func signOut(_ client: Int) {
        guard !isAway, Self.wantsPerson(client) else { return }
        let (slot, name) = (slots[client], Self.name(client))
        world.signedOut(name)
        // It may take effect late, after another sign-in.
        Task { [world] in
            _ = await slot.heimdallr.logOut(locally: true)
            world.signedOut(name)
        }
    }

    func refresh(_ client: Int) { slots[client].heimdallr.refreshNow() }

    func refuse(_ client: Int) {
        guard let token = slots[client].heimdallr.currentToken() else { return }
        _ = slots[client].heimdallr.refused(token, by: "a resource", saysInvalid: true, isReplay: false)
    }

    func lastServed(_ client: Int) -> ContinuousClock.Instant { served[client] ?? Scheduler.shared.start }

    func status(_ client: Int) -> String { "\(slots[client].heimdallr.status())" }
}
