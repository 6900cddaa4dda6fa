import Heimdallr

/// One run: replicas, a database, authorization servers, callers, faults, and the judge over all of them.
final class World: @unchecked Sendable {
    /// A holder that was away for this long has lost its lease.
    static let longAbsence = Duration.seconds(10)
    /// How long a caller waits for a token (`token_wait`).
    static let tokenWait = Duration.seconds(15)
    /// After the last fault every client has its token within this time.
    private static let recovery = 150_000
    /// Callers are gone after that. Requests under way end in the first half of this time.
    private static let quiet = 40_000
    /// A sign-out is seen everywhere within this time.
    private static let signOutTime = Duration.seconds(40)

    let plan: Plan
    private(set) var authorities: [Authority] = []
    private(set) lazy var database = Database(self)
    private(set) lazy var files = Files(self)
    private(set) var replicas: [Replica] = []
    private(set) var failure: String?
    private(set) var requests = 0
    private(set) var isQuiet = false
    private var mayAsk = true
    private var history: [String] = []
    private let keepsHistory: Bool
    private var digest: UInt64 = 0xCBF2_9CE4_8422_2325
    private var askers: [String: Int] = [:]
    private var lostAnswers = 0
    private var delay = 60
    private var delayUntil: ContinuousClock.Instant?
    private var refusesUntil: ContinuousClock.Instant?
    /// The sign-in that stands, by authority and client.
    private var signIns: [String: Authority.Family] = [:]
    private(set) var isFaulty = false
    private var isOver = false
    var hasEnded: Bool { isOver || failure != nil }
    /// The configuration of the replicas names the files, not the database.
    var usesFiles: Bool
    var isMoving = false
    var mover: Process?
    /// The last fault is over since then.
    var calmSince: ContinuousClock.Instant?

    var now: ContinuousClock.Instant { Scheduler.shared.now }
    /// The processes of all replicas.
    var processes: [Process] { replicas.map(\.process) }
    /// The store is as it was when a mark that had ended was taken at once. A run then has to find a fault.
    nonisolated(unsafe) static var isBroken = false

    init(_ plan: Plan, keepsHistory: Bool) {
        self.plan = plan
        usesFiles = plan.usesFiles
        self.keepsHistory = keepsHistory
    }

    // MARK: The judge

    func fail(_ text: String) {
        guard failure == nil else { return }
        failure = "\(Scheduler.shared.milliseconds) ms: \(text)"
        log("FAILED: \(text)")
    }

    func log(_ text: @autoclosure () -> String) {
        let line = "\(Scheduler.shared.milliseconds) ms: \(text())"
        for byte in line.utf8 { digest = (digest ^ UInt64(byte)) &* 0x100_0000_01B3 }
        if keepsHistory { history.append(line) }
    }

    /// Digest of all that happened: two runs of one seed have the same.
    var fingerprint: String { String(digest, radix: 16) }
    var transcript: String { history.joined(separator: "\n") }

    /// A token request begins, of one client and, where callers bring tokens, for one of them.
    func began(_ key: String) {
        requests += 1
        askers[key, default: 0] += 1
        if askers[key, default: 0] > 1 { fail("two token requests at once: \(key)") }
        if !mayAsk { fail("a token that nobody uses is fetched anew: \(key)") }
    }

    func ended(_ key: String) { askers[key, default: 0] -= 1 }

    /// - Parameters:
    ///   - token: served to a caller now.
    ///   - caller: the token that the caller brought.
    ///   - isStored: the client says that its record is durable.
    func served(
        _ token: String, _ client: String, _ caller: String?, _ authority: Authority, at process: Process,
        isStored: Bool
    ) {
        guard let issued = authority.token(token) else {
            return fail("\(process) gave \(client) a token that is not good: \(authority.name) never gave out \(token)")
        }
        if issued.client != client || issued.caller != caller {
            fail(
                "\(process) gave \(caller ?? client) a token that is not good: it is \(issued.caller ?? issued.client)'s"
            )
        }
        if issued.endsAt <= now { fail("\(process) gave \(client) a token that is not good any more: \(token)") }
        if isStored, !issued.isSaved { fail("\(process) gave \(client) \(token) before it was durable") }
        if let removedAt = issued.family?.removedAt, now - removedAt > Self.signOutTime,
            process.absence(since: removedAt) == .zero, database.downtime(since: removedAt) == .zero
        {
            fail("\(process) gave \(client) \(token), \(now - removedAt) after its sign-out")
        }
    }

    /// A sign-out is durable. On a full disk the file is gone, and tells other processes nothing.
    func removed(_ family: Authority.Family?, by process: Process) {
        guard let family, !process.isMover, !(process.usesFiles && files.isFull) else { return }
        family.removedAt = family.removedAt ?? now
    }

    /// A record in the place of another one, durable.
    func wrote(_ record: TokenRecord?, over old: TokenRecord?, by process: Process) {
        let (former, new) = (old?.refreshToken?.revealed, record?.refreshToken?.revealed)
        for authority in authorities {
            if let record {
                authority.wasSaved(record)
            } else if !isMoving {
                // During a move, a proxy that is left on the former store removes a record there once more, if that store
                // forgot the move.
                removed(former.flatMap { authority.family(of: $0) }, by: process)
            }
            guard let new else { continue }
            if let former, !authority.follows(new, former) {
                fail("\(process) wrote \(new) over \(former), of which it did not come: no revision is its predecessor")
            }
            if let family = authority.family(of: new), family.removedAt != nil, !family.isRevoked {
                fail("\(process) wrote \(new), which came back after its sign-out")
            }
        }
    }

    /// The database lost one record, and has another one of its client.
    func forgot(_ lost: String?, for remaining: String?) {
        for authority in authorities { authority.forgot(lost, for: remaining) }
    }

    // MARK: Faults of the token endpoint

    enum RequestFault {
        case refused, cut
        case status(Int, String)
    }

    func requestFault() -> RequestFault? {
        guard let refusesUntil, now < refusesUntil else { return nil }
        switch Scheduler.shared.chance.below(6) {
        case 0: return .refused
        case 1: return .cut
        case 2: return .status(503, "busy")
        case 3: return .status(429, "{}")
        case 4:
            return .status(
                200,
                Scheduler.shared.chance.once(in: 2)
                    ? "<html>" : "{\"access_token\":\"a\\r\\nb\",\"token_type\":\"Bearer\"}")
        default: return nil
        }
    }

    func answerDelay() -> Duration {
        let most = delayUntil.map { now < $0 } ?? false ? delay : 300
        return .milliseconds(Scheduler.shared.chance.within(1...most))
    }

    func losesAnswer() -> Bool {
        guard lostAnswers > 0 else { return false }
        lostAnswers -= 1
        return true
    }

    // MARK: The run

    /// - Returns: why it failed, if it did.
    func run() -> String? {
        Scheduler.shared.begin(seed: plan.seed)
        authorities = [Authority("one", self), Authority("two", self)]
        replicas = (0..<plan.replicas).map { Replica($0, self) }
        for replica in replicas { replica.start() }
        for client in 0..<plan.clients where plan.kinds[client].wantsPerson {
            Scheduler.shared.after(.milliseconds(500)) { [self] in perform(.signIn(replica: 0, client: client)) }
        }
        for entry in plan.events {
            Scheduler.shared.after(.milliseconds(entry.at)) { [self] in
                isFaulty = true
                log("\(entry.event)")
                perform(entry.event)
            }
        }
        if plan.strikes { Scheduler.shared.after(.seconds(3)) { [self] in isFaulty = true } }
        Scheduler.shared.after(.milliseconds(Plan.span)) { [self] in calm() }
        Scheduler.shared.after(.milliseconds(Plan.span + Self.recovery)) { [self] in judgeTheEnd() }
        let isGoingOn = Scheduler.shared.run(until: { hasEnded }) {
            if let escape = Scheduler.shared.escape {
                fail("the simulated code waits for a real clock or thread: \(escape)")
            }
        }
        if !isGoingOn { fail("tasks go on for ever while time stands still") }
        let result = failure
        for replica in replicas { replica.end() }
        mover?.die()
        Scheduler.shared.run(until: { false }) {}
        files.remove()
        return result
    }

    /// A refresh token was used a moment ago.
    func strike() {
        guard plan.strikes, isFaulty, Scheduler.shared.chance.once(in: 20) else { return }
        let event = Plan.strike(&Scheduler.shared.chance)
        Scheduler.shared.after(.milliseconds(Scheduler.shared.chance.within(0...50))) { [self] in
            guard isFaulty else { return }
            log("\(event)")
            perform(event)
        }
    }

    private func perform(_ event: Plan.Event) {
        switch event {
        case .signIn(let replica, let client): replicas[replica].signIn(client)
        case .signOut(let replica, let client, let revokes): replicas[replica].signOut(client, revokes: revokes)
        case .refresh(let replica, let client): replicas[replica].refresh(client)
        case .refuse(let replica, let client, let span): replicas[replica].refuse(client, for: .milliseconds(span))
        case .leave(let replica, let client): replicas[replica].leave(client)
        case .reload(let replica, let changes): replicas[replica].reload(changes: changes)
        case .restart(let replica): replicas[replica].restart()
        case .kill(let replica, let time): replicas[replica].kill(startingAfter: .milliseconds(time))
        case .stop(let replica, let time): replicas[replica].process.stop(for: .milliseconds(time))
        case .dropConnections(let replica): database.drop(replicas[replica].process)
        case .resets(let replica, let time):
            database.drop(replicas[replica].process)
            replicas[replica].process.reset(for: .milliseconds(time))
        case .cutOff(let replica, let time): replicas[replica].process.cutOff(for: .milliseconds(time))
        case .crash(let time): database.crash(for: .milliseconds(time))
        case .slow(let time): database.slow(for: .milliseconds(time))
        case .outage(let kind, let time): database.begin(kind, for: .milliseconds(time))
        case .holdUp(let replica, let time): replicas[replica].process.holdUp(for: .milliseconds(time))
        case .forget(let lag, let time): database.forget(.milliseconds(lag), away: .milliseconds(time))
        case .split(let lag, let time): database.split(.milliseconds(lag), for: .milliseconds(time))
        case .fullDisk(let time): files.fill(for: .milliseconds(time))
        case .loseAnswers(let count): lostAnswers = count
        case .delayAnswers(let time, let span):
            delay = time
            delayUntil = now + .milliseconds(span)
        case .refuseRequests(let span): refusesUntil = now + .milliseconds(span)
        case .setWallClock(let replica, let seconds): replicas[replica].process.wallOffset += Int64(seconds)
        case .rollOut(let replica, let authority, false): replicas[replica].restart(authority: authority)
        case .rollOut(let replica, let authority, true): replicas[replica].reload(authority: authority)
        case .move(let running, let life): move(running: running, killedAfter: life.map { .milliseconds($0) })
        }
    }

    /// Faults stop; one configuration for all.
    private func calm() {
        isFaulty = false
        calmSince = now
        lostAnswers = 0
        log("the faults are over")
        for replica in replicas where replica.authority != replicas[0].authority {
            replica.restart(authority: replicas[0].authority)
        }
    }

    /// Any replica but those that are down: where the load balancer sends a browser.
    func someReplica() -> Replica? {
        let running = replicas.filter { !$0.isAway }
        return running.isEmpty ? nil : running[Scheduler.shared.chance.below(running.count)]
    }

    func signedIn(_ client: String, _ authority: Authority, _ family: Authority.Family?) {
        log("signed in to \(client) at \(authority.name)")
        if let family { stored(family, authority) }
    }

    /// A sign-in is durable, or the person has been told that it is.
    func stored(_ family: Authority.Family, _ authority: Authority) {
        let key = "\(authority.name) \(family.client)"
        guard family.removedAt == nil, !family.isReplaced else { return }
        if let former = signIns[key], former !== family {
            // The person may hear late of a sign-in that another one has replaced.
            guard former.number < family.number else { return }
            former.isReplaced = true
        }
        signIns[key] = family
    }

    /// - Returns: the sign-in that stood.
    @discardableResult
    func signedOut(_ client: String, _ authority: Authority) -> Authority.Family? {
        let family = signIns.removeValue(forKey: "\(authority.name) \(client)")
        family?.isReplaced = true
        return family
    }

    /// Every client has had a token at every replica within a moment, unless it was lost for a reason.
    private func judgeTheEnd() {
        guard !hasEnded else { return }
        guard !isMoving, let calmSince, now - calmSince >= .milliseconds(Self.recovery) else {
            return Scheduler.shared.after(.seconds(5)) { [self] in judgeTheEnd() }
        }
        for replica in replicas where !replica.isAway {
            for client in 0..<plan.clients where replica.lastServed(client) < now - .seconds(30) {
                // Rule 4: after an answer that looks permanent the server is asked less often.
                if replica.wasRefused(client) { continue }
                let name = Replica.name(client)
                if plan.kinds[client].wantsPerson {
                    guard let family = signIns["\(replica.server.name) \(name)"], !family.isRevoked,
                        // It was in memory only, while the store was out of order.
                        family.isDurable || !family.process.isDead, !family.isForgotten
                    else { continue }
                }
                fail("\(replica.process) has no token of \(name), long after the last fault: \(replica.status(client))")
            }
        }
        isQuiet = true
        Scheduler.shared.after(.milliseconds(Self.quiet / 2)) { [self] in mayAsk = false }
        Scheduler.shared.after(.milliseconds(Self.quiet)) { [self] in isOver = true }
    }

    /// Kind of the failure, without names.
    var failureKind: String? {
        failure.map { text in
            [
                "presented", "no token of", "not good", "never gave", "at once", "waited", "revision", "secret", "code",
                "nobody uses", "durable", "sign-out", "sign-in", "move",
            ].first {
                text.contains($0)
            } ?? "else"
        }
    }
}
