/// The answers to earlier questions. An answer is fresh for some seconds. The last good addresses may serve longer, while
/// no name server answers (RFC 8767).
struct KnownNames {
    private struct Entry {
        var answer: NameAnswer
        var freshUntil: LoopTime
        var good: [NumericAddress]?
        var goodUntil: LoopTime
        /// Number of the look-ups that gave the answer. Answers of earlier look-ups do not replace it.
        var group: UInt64
        /// Whether A and AAAA are asked separately at once, because asking for both took long.
        var isSlow: Bool
    }

    private let limits: NameLimits
    private var entries: [String: Entry] = [:]

    init(_ limits: NameLimits) { self.limits = limits }

    func fresh(_ name: String, _ now: LoopTime) -> NameAnswer? {
        entries[name].flatMap { now < $0.freshUntil ? $0.answer : nil }
    }

    /// Returns the last good addresses, if they may still serve.
    func good(_ name: String, _ now: LoopTime) -> NameAnswer? {
        entries[name].flatMap { entry in now < entry.goodUntil ? entry.good.map { .success($0) } : nil }
    }

    func isSlow(_ name: String) -> Bool { entries[name]?.isSlow ?? false }

    mutating func keep(_ name: String, _ answer: NameAnswer, group: UInt64, isSlow: Bool, _ now: LoopTime) {
        if let known = entries[name], group < known.group { return }
        let addresses = try? answer.get()
        makeRoom(for: name, now)
        entries[name] = Entry(
            answer: answer, freshUntil: now + (addresses == nil ? limits.failureLife : limits.answerLife),
            good: addresses, goodUntil: now + (addresses == nil ? .zero : limits.staleLife), group: group,
            isSlow: isSlow)
    }

    /// Lets the last good addresses serve for a moment, after a look-up failed.
    mutating func renewGood(_ name: String, _ good: NameAnswer, _ now: LoopTime) {
        entries[name]?.answer = good
        entries[name]?.freshUntil = now + limits.failureLife
    }

    /// Makes all answers stale, and forgets failures, because the system's resolver now works differently.
    mutating func expire(_ now: LoopTime) {
        for (name, entry) in entries {
            if entry.good == nil { entries[name] = nil } else { entries[name]?.freshUntil = min(entry.freshUntil, now) }
        }
    }

    private mutating func makeRoom(for name: String, _ now: LoopTime) {
        guard entries.count >= limits.answers, entries[name] == nil else { return }
        entries = entries.filter { now < $0.value.freshUntil || now < $0.value.goodUntil }
        guard entries.count >= limits.answers else { return }
        if let first = entries.min(by: { $0.value.freshUntil < $1.value.freshUntil }) { entries[first.key] = nil }
    }
}

struct NameLimits: Sendable {
    /// Concurrent look-ups. Each has a thread, which can't be stopped.
    var slots = 128
    /// Concurrent look-ups of names with the same last two labels.
    var slotsOfZone = 32
    /// Concurrent look-ups of names that programs choose.
    var slotsOfProgramNames = 96
    /// Concurrent look-ups of one name.
    var slotsOfName = 6
    /// Threads, including those of look-ups that began before the system's resolver changed.
    var threads = 256
    /// Names that wait for a slot.
    var queue = 256
    /// Questions that wait for answers, in total.
    var askers = 4096
    var answers = 512
    var answerLife = Duration.seconds(5)
    var failureLife = Duration.seconds(1)
    /// Time for which the last good addresses may serve.
    var staleLife = Duration.seconds(3600)
    /// Age after which a look-up takes long: another look-up begins, and the last good addresses serve.
    var patience = Duration.milliseconds(500)
}
