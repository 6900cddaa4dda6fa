/// The look-ups under way, the questions that wait for them, and the cached answers. No I/O: `NameResolver` acts.
///
/// Concurrent questions for a name share one look-up. A look-up takes one slot, however many questions wait for it. The
/// names of one zone can take only a part of the slots, and so can the names that clients choose. So some slots are
/// always left for other names. A name without a slot waits in a queue of limited length.
struct NameTable<Asker> {
    struct Limits: Sendable {
        /// Concurrent look-ups. Each has a thread, which can't be stopped.
        var slots = 128
        /// Concurrent look-ups of names with the same last two labels.
        var slotsOfZone = 32
        /// Concurrent look-ups of names that clients choose.
        var slotsOfClientNames = 96
        /// Names that wait for a slot.
        var queue = 256
        /// Questions that wait for answers, in total.
        var askers = 4096
        var answers = 512
        var answerLife = Duration.seconds(5)
        var failureLife = Duration.seconds(1)
    }

    enum Reply {
        case known(NameAnswer)
        /// The answer comes later. If `starts` is `true`, the caller has to begin the look-up now.
        case pending(starts: Bool)
        case refused
    }

    private struct Work {
        var isRunning: Bool
        var isFromClient: Bool
        var askers: [UInt64: Asker] = [:]
    }

    private let limits: Limits
    private var work: [String: Work] = [:]
    /// Names that wait for a slot, oldest first.
    private var queue: [String] = []
    private var known: [String: (answer: NameAnswer, until: LoopTime)] = [:]
    private var running = 0
    private var runningClientNames = 0
    private var runningByZone: [Substring: Int] = [:]
    private var askers = 0

    init(_ limits: Limits = Limits()) { self.limits = limits }

    /// - Parameters:
    ///   - isFromClient: whether a client chose the name.
    ///   - asker: returned by `finish`, unless `leave` was called with `id`.
    mutating func ask(_ name: String, isFromClient: Bool, id: UInt64, asker: Asker, now: LoopTime) -> Reply {
        if let found = known[name] {
            if now < found.until { return .known(found.answer) }
            known[name] = nil
        }
        guard askers < limits.askers else { return .refused }
        let isNew = work[name] == nil
        if isNew {
            guard work.count - running < limits.queue else { return .refused }
            work[name] = Work(isRunning: false, isFromClient: isFromClient)
        } else if !isFromClient, work[name]?.isRunning == false {
            // A name that the configuration chose may use slots that clients' names may not.
            work[name]?.isFromClient = false
        }
        work[name]?.askers[id] = asker
        askers += 1
        guard work[name]?.isRunning == false, hasSlot(for: name) else {
            if isNew { queue.append(name) }
            return .pending(starts: false)
        }
        begin(name)
        return .pending(starts: true)
    }

    /// Removes a question. A look-up that has begun goes on; a waiting look-up is dropped with its last question.
    mutating func leave(_ name: String, id: UInt64) {
        guard work[name]?.askers.removeValue(forKey: id) != nil else { return }
        askers -= 1
        guard let left = work[name], !left.isRunning, left.askers.isEmpty else { return }
        work[name] = nil
        queue.removeAll { $0 == name }
    }

    /// Ends a look-up. Returns the questions to answer, and the names whose look-ups the caller has to begin now.
    mutating func finish(_ name: String, _ answer: NameAnswer, now: LoopTime) -> (askers: [Asker], starts: [String]) {
        guard let done = work[name], done.isRunning else { return ([], []) }
        work[name] = nil
        running -= 1
        if done.isFromClient { runningClientNames -= 1 }
        let zone = Self.zone(of: name)
        runningByZone[zone, default: 1] -= 1
        if runningByZone[zone] == 0 { runningByZone[zone] = nil }
        askers -= done.askers.count
        remember(name, answer, now)
        return (Array(done.askers.values), beginWaiting())
    }

    private mutating func beginWaiting() -> [String] {
        var starts: [String] = []
        for name in queue where work[name]?.isRunning == false && hasSlot(for: name) {
            begin(name)
            starts.append(name)
        }
        queue.removeAll { work[$0]?.isRunning != false }
        return starts
    }

    private func hasSlot(for name: String) -> Bool {
        guard let asked = work[name], running < limits.slots else { return false }
        if asked.isFromClient, runningClientNames >= limits.slotsOfClientNames { return false }
        return runningByZone[Self.zone(of: name), default: 0] < limits.slotsOfZone
    }

    private mutating func begin(_ name: String) {
        work[name]?.isRunning = true
        running += 1
        if work[name]?.isFromClient == true { runningClientNames += 1 }
        runningByZone[Self.zone(of: name), default: 0] += 1
    }

    private mutating func remember(_ name: String, _ answer: NameAnswer, _ now: LoopTime) {
        let life = if case .success = answer { limits.answerLife } else { limits.failureLife }
        if known.count >= limits.answers {
            known = known.filter { now < $0.value.until }
            if known.count >= limits.answers, let first = known.min(by: { $0.value.until < $1.value.until }) {
                known[first.key] = nil
            }
        }
        known[name] = (answer, now + life)
    }

    /// The last two labels: `b.example` of `a.b.example.`
    private static func zone(of name: String) -> Substring {
        let labels = name.split(separator: ".")
        guard labels.count > 2 else { return name.last == "." ? name.dropLast() : name[...] }
        return name[labels[labels.count - 2].startIndex..<labels[labels.count - 1].endIndex]
    }
}
