import Heimdallr

/// A database that crashes, is slow and loses connections, for all processes of a run.
final class Database: @unchecked Sendable {
    struct Row {
        var revision: UInt64 = 0
        var record: TokenRecord?
        var mark: Mark?
        /// When the record was made; a record that is restored was made before.
        var madeAt: ContinuousClock.Instant?
    }

    /// As the column `holder` of the real one.
    struct Mark {
        enum State {
            case standing
            case contested(since: ContinuousClock.Instant)
            case taken(at: ContinuousClock.Instant)
        }

        var owner: String
        var until: ContinuousClock.Instant
        var state = State.standing
    }

    typealias Rows = [String: Row]
    /// One transaction: the rows of a server, and the server's time.
    typealias Work<Value> = (inout Rows, ContinuousClock.Instant) throws -> Value

    struct Lost: Error {}

    unowned let world: World
    var rows: Rows = [:]
    let outages = Outages()
    /// The store that the records were moved to.
    var newLocation: String?
    private(set) var isUp = true
    private(set) var backAt: ContinuousClock.Instant?
    private var downtimes: [(from: ContinuousClock.Instant, to: ContinuousClock.Instant)] = []
    private(set) var slowUntil: ContinuousClock.Instant?
    private typealias Listener = (
        number: Int, process: Process, client: String, stream: AsyncStream<Void>.Continuation
    )
    private var listeners: [Listener] = []
    private var lastListener = 0
    private var pending: [String: (content: Secret, end: ContinuousClock.Instant)] = [:]

    init(_ world: World) { self.world = world }

    // MARK: Faults

    func crash(for duration: Duration) {
        guard isUp else { return }
        isUp = false
        downtimes.append((world.now, world.now + duration))
        Scheduler.shared.after(duration) { [self] in
            isUp = true
            backAt = world.now
            tellAll()
        }
    }

    /// Every listener connects anew, and looks.
    func tellAll() {
        for listener in listeners { tell(listener) }
    }

    func downtime(since instant: ContinuousClock.Instant) -> Duration {
        downtimes.reduce(.zero) { sum, time in
            sum + max(.zero, max(time.from, instant).duration(to: min(time.to, world.now)))
        }
    }

    func slow(for duration: Duration) { slowUntil = world.now + duration }

    var isSlow: Bool { slowUntil.map { world.now < $0 } ?? false }

    /// Ends all connections of a process, with the statements under way.
    func drop(_ process: Process) { process.reset(for: .milliseconds(5)) }

    // MARK: Statements

    /// One statement of `process`: it may be lost before it is carried out, or its answer after.
    /// - Parameter client: the row that it writes; `nil`: it only reads.
    func perform<Value: Sendable>(
        by process: Process, writes client: String? = nil, _ work: @escaping Work<Value>
    ) async throws -> Value {
        try await process.pass()
        let chance = { (count: Int) in Scheduler.shared.chance.within(0...count) }
        try await process.sleep(for: .milliseconds(1 + chance(isSlow ? 2000 : 8)))
        if process.isCut {
            // Nothing answers, and nothing says so.
            try await process.sleep(for: .seconds(5))
            throw Lost()
        }
        guard isUp, !process.isReset else { throw Lost() }
        if world.plan.breaks, Scheduler.shared.chance.once(in: 60), world.isFaulty { throw Lost() }
        let value = try await carryOut(by: process, writes: client, work)
        if world.plan.breaks, Scheduler.shared.chance.once(in: 60), world.isFaulty { throw Lost() }
        try await process.sleep(for: .milliseconds(chance(4)))
        guard !process.isCut else {
            try await process.sleep(for: .seconds(5))
            throw Lost()
        }
        guard isUp, !process.isReset else { throw Lost() }
        return value
    }

    func changed(_ client: String, by process: Process) {
        for listener in listeners where listener.client == client && listener.process !== process {
            Scheduler.shared.after(.milliseconds(Scheduler.shared.chance.within(1...20))) { [self] in tell(listener) }
        }
    }

    private func tell(_ listener: Listener) {
        // A process that is cut off hears it when it is back.
        if let end = listener.process.cutUntil, end > world.now {
            Scheduler.shared.at(end + .milliseconds(300)) { listener.stream.yield() }
        } else {
            listener.stream.yield()
        }
    }

    func changes(client: String, _ process: Process) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        lastListener += 1
        let number = lastListener
        listeners.append((number, process, client, continuation))
        continuation.onTermination = { [self] _ in listeners.removeAll { $0.number == number } }
        return stream
    }

    // MARK: Sign-ins under way

    func putPending(_ content: Secret, _ key: String, _ life: Duration, by process: Process) async throws {
        try await perform(by: process) { [self] _, _ in pending[key] = (content, world.now + life) }
    }

    func takePending(_ key: String, by process: Process) async throws -> Secret? {
        try await perform(by: process) { [self] _, _ in
            pending.removeValue(forKey: key).flatMap { $0.end > world.now ? $0.content : nil }
        }
    }
}
