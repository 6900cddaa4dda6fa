import Heimdallr

/// One run: replicas, a database, authorization servers, callers, faults, and the judge over all of them.
final class World: @unchecked Sendable {
    /// A holder that was away for this long has lost its lease.
    static let longAbsence = Duration.seconds(10)
    /// How long a caller waits for a token (`token_wait`).
    private static let tokenWait = Duration.seconds(15)
    /// After the last fault every client has its token within this time.
    private static let recovery = 150_000

    let plan: Plan
    private(set) var authorities: [Authority] = []
    private(set) var database: Database?
    private var replicas: [Replica] = []
    private(set) var failure: String?
    private(set) var requests = 0
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

    var now: ContinuousClock.Instant { Scheduler.shared.now }

    init(_ plan: Plan, keepsHistory: Bool) {
        self.plan = plan
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

    func began(_ client: String, _ process: Process) {
        requests += 1
        let key = "\(process) \(client)"
        askers[key, default: 0] += 1
        if askers[key, default: 0] > 1 { fail("\(process) has two token requests of \(client) at once") }
    }

    func ended(_ client: String, _ process: Process) { askers["\(process) \(client)", default: 0] -= 1 }

    /// - Parameter token: served to a caller now.
    func served(_ token: String, _ client: String, _ authority: Int, at process: Process) {
        guard !authorities[authority].isGood(token, of: client) else { return }
        fail(
            "\(process) gave a caller of \(client) a token that is not good at \(authorities[authority].name): \(token)"
        )
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
        case 4: return .status(200, "<html>")
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
        let database = Database(self)
        self.database = database
        replicas = (0..<plan.replicas).map { Replica($0, self) }
        for replica in replicas { replica.start() }
        for client in 0..<plan.clients where Replica.wantsPerson(client) {
            Scheduler.shared.after(.milliseconds(500)) { [self] in perform(.signIn(replica: 0, client: client)) }
        }
        for entry in plan.events {
            Scheduler.shared.after(.milliseconds(entry.at)) { [self] in
                isFaulty = true
                log("\(entry.event)")
                perform(entry.event)
            }
        }
        Scheduler.shared.after(.milliseconds(Plan.span)) { [self] in calm() }
        Scheduler.shared.after(.milliseconds(Plan.span + Self.recovery)) { [self] in judgeTheEnd() }
        let isMoving = Scheduler.shared.run(until: { isOver || failure != nil }) {
            if Scheduler.shared.escapes > 0 { fail("a sleep on a real clock") }
        }
        if !isMoving { fail("tasks go on for ever while time stands still") }
        let result = failure
        for replica in replicas { replica.end() }
        Scheduler.shared.run(until: { false }) {}
        return result
    }

    private func perform(_ event: Plan.Event) {
        switch event {
        case .signIn(let replica, let client): replicas[replica].signIn(client)
        case .signOut(let replica, let client): replicas[replica].signOut(client)
        case .refresh(let replica, let client): replicas[replica].refresh(client)
        case .refuse(let replica, let client): replicas[replica].refuse(client)
        case .reload(let replica, let changes): replicas[replica].reload(changes: changes)
        case .restart(let replica): replicas[replica].restart()
        case .kill(let replica, let time): replicas[replica].kill(startingAfter: .milliseconds(time))
        case .stop(let replica, let time): replicas[replica].process.stop(for: .milliseconds(time))
        case .dropConnections(let replica): database?.drop(replicas[replica].process)
        case .resets(let replica, let time):
            database?.drop(replicas[replica].process)
            replicas[replica].process.reset(for: .milliseconds(time))
        case .cutOff(let replica, let time): replicas[replica].process.cutOff(for: .milliseconds(time))
        case .crash(let time): database?.crash(for: .milliseconds(time))
        case .slow(let time): database?.slow(for: .milliseconds(time))
        case .loseAnswers(let count): lostAnswers = count
        case .delayAnswers(let time, let span):
            delay = time
            delayUntil = now + .milliseconds(span)
        case .refuseRequests(let span): refusesUntil = now + .milliseconds(span)
        case .setWallClock(let replica, let seconds): replicas[replica].process.wallOffset += Int64(seconds)
        case .rollOut(let replica, let authority): replicas[replica].restart(authority: authority)
        }
    }

    /// Faults stop; one configuration for all.
    private func calm() {
        isFaulty = false
        lostAnswers = 0
        log("the faults are over")
        for replica in replicas where replica.authority != replicas[0].authority {
            replica.restart(authority: replicas[0].authority)
        }
    }

    func signedIn(_ client: String, _ authority: Int, with refreshToken: String?) {
        signIns[client]?.isReplaced = true
        signIns[client] = refreshToken.flatMap { authorities[authority].family(of: $0) }
    }

    func signedOut(_ client: String) {
        signIns[client]?.isReplaced = true
        signIns[client] = nil
    }

    /// Every client has had a token at every replica within a moment, unless it was lost for a reason.
    private func judgeTheEnd() {
        isOver = true
        for replica in replicas where !replica.isAway {
            for client in 0..<plan.clients where replica.lastServed(client) < now - .seconds(30) {
                let name = Replica.name(client)
                if Replica.wantsPerson(client) {
                    guard let family = signIns[name], !family.isRevoked,
                        authorities[replica.authority].owns(family)
                    else { continue }
                }
                fail("\(replica.process) has no token of \(name), long after the last fault: \(replica.status(client))")
            }
        }
    }

    /// Kind of the failure, without names.
    var failureKind: String? {
        failure.map { text in
            ["presented", "no token of", "not good", "never gave", "at once", "waited", "revision"].first {
                text.contains($0)
            } ?? "else"
        }
    }
}
