import Heimdallr

/// One process of the fleet, from its start to its end. Stopped, it does nothing; dead, nothing of it has any effect.
final class Process: CustomStringConvertible, @unchecked Sendable {
    struct Dead: Error {}

    let replica: Int
    let incarnation: Int
    /// The store of its configuration; else it uses the database.
    let usesFiles: Bool
    let startedAt = Scheduler.shared.now
    /// When it connected to another server than before.
    var movedAt: ContinuousClock.Instant?
    /// It has connected to the database.
    var isConnected = false
    unowned let world: World
    private(set) var isDead = false
    /// Begin and end of each time in which it was stopped, or cut off from the database.
    private var absences: [(from: ContinuousClock.Instant, to: ContinuousClock.Instant)] = []
    private var stoppedUntil: ContinuousClock.Instant?
    private(set) var cutUntil: ContinuousClock.Instant?
    private(set) var resetsUntil: ContinuousClock.Instant?
    /// Until when the server holds each of its statements up, and carries it out after it was given up.
    private(set) var lateUntil: ContinuousClock.Instant?
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var sleepers: [Int: FirstOutcome<Void>] = [:]
    private var lastNumber = 0
    /// Work that waits for the disk.
    private var disk: [Int: () -> Void] = [:]
    /// The stores of this process, with their locks; the key says whether it is the files.
    var stores: [Bool: any OAuthAccessTokenStore] = [:]
    var wallOffset: Int64 = 0

    init(_ replica: Int, _ incarnation: Int, _ world: World, usesFiles: Bool) {
        self.replica = replica
        self.incarnation = incarnation
        self.world = world
        self.usesFiles = usesFiles
    }

    /// Number of a process that is no replica: `store move`.
    static let mover = 99
    var isMover: Bool { replica == Self.mover }
    var description: String { isMover ? "move.\(incarnation)" : "r\(replica).\(incarnation)" }

    /// A number for each object of the process that wants one.
    func number() -> Int {
        lastNumber += 1
        return lastNumber
    }

    // MARK: Faults

    func die() {
        isDead = true
        wake()
        // Its locks are free at once.
        (disk, stores) = ([:], [:])
        for number in sleepers.keys.sorted() { sleepers[number]?.end(.failure(Dead())) }
        sleepers = [:]
    }

    func stop(for duration: Duration) {
        let end = max(stoppedUntil ?? world.now, world.now + duration)
        absences.append((world.now, end))
        stoppedUntil = end
        Scheduler.shared.at(end) { [self] in
            guard stoppedUntil == end else { return }
            stoppedUntil = nil
            wake()
        }
    }

    private func wake() {
        let all = waiting
        waiting = []
        for continuation in all { continuation.resume() }
    }

    func cutOff(for duration: Duration) {
        absences.append((world.now, world.now + duration))
        cutUntil = max(cutUntil ?? world.now, world.now + duration)
    }

    func holdUp(for duration: Duration) {
        absences.append((world.now, world.now + duration + Outages.answerTime))
        lateUntil = world.now + duration
    }

    func reset(for duration: Duration) { resetsUntil = world.now + duration }

    var isCut: Bool { cutUntil.map { world.now < $0 } ?? false }
    var isReset: Bool { resetsUntil.map { world.now < $0 } ?? false }

    /// The database sees it. After an interruption it connects anew within a second.
    var hasConnection: Bool {
        let ends = [resetsUntil, world.database.backAt].compactMap { $0 }
        return isConnected && !isDead && world.database.isUp && ends.allSatisfy { $0 + .seconds(1) < world.now }
    }

    /// How long it was stopped or cut off since then.
    func absence(since instant: ContinuousClock.Instant) -> Duration {
        absences.reduce(.zero) { sum, absence in
            sum + max(.zero, max(absence.from, instant).duration(to: min(absence.to, world.now)))
        }
    }

    // MARK: Seams

    /// Goes on once the process runs.
    func pass() async throws {
        while stoppedUntil != nil, !isDead {
            await withCheckedContinuation { waiting.append($0) }
        }
        if isDead { throw Dead() }
    }

    var clock: HeimdallrClock {
        HeimdallrClock(
            now: { [world] in world.now },
            wallClock: { [self] in 1_700_000_000 + Int64(Scheduler.shared.milliseconds / 1000) + wallOffset },
            sleep: { [self] in try await sleep(until: $0) },
            random: { Scheduler.shared.chance.fraction() })
    }

    func sleep(until instant: ContinuousClock.Instant) async throws {
        let outcome = FirstOutcome<Void>()
        let number = number()
        sleepers[number] = outcome
        defer { sleepers[number] = nil }
        Scheduler.shared.at(instant) { outcome.end(.success(())) }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { outcome.await($0) }
        } onCancel: {
            outcome.end(.failure(CancellationError()))
        }
        try await pass()
        try Task.checkCancellation()
    }

    /// Clocks of the machine that all processes of a file store share, and its disk.
    func machine(
        isSlow: @escaping @Sendable () -> Bool, carryOut: @escaping @Sendable (() -> Void) -> Void
    ) -> FileStoreMachine {
        var machine = FileStoreMachine { [self] in
            let seconds = Int64(Scheduler.shared.milliseconds / 1000)
            return TimeStamp(
                wall: clock.wallClock(), sinceBoot: seconds, boot: [1], isSynchronized: wallOffset == 0)
        }
        machine.clock = clock
        machine.carryOut = { [self] work in
            let (time, number) = (Scheduler.shared.chance.within(0...(isSlow() ? 2000 : 8)), number())
            disk[number] = work
            Scheduler.shared.after(.milliseconds(time)) { [self] in
                onceRunning { [self] in if let work = disk.removeValue(forKey: number) { carryOut(work) } }
            }
        }
        return machine
    }

    private func onceRunning(_ work: @escaping () -> Void) {
        guard !isDead else { return }
        if let stoppedUntil {
            Scheduler.shared.at(stoppedUntil) { [self] in onceRunning(work) }
        } else {
            work()
        }
    }

    func sleep(for duration: Duration) async throws { try await sleep(until: world.now + duration) }
}
