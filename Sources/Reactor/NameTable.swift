/// The look-ups under way, and the questions that wait for them. No I/O: `NameResolver` acts.
///
/// Concurrent questions for a name share one look-up. A look-up that takes long is not shared with new questions: they
/// begin another one, because name servers may have changed meanwhile. Each look-up takes a slot. The names of one zone
/// can take only a part of the slots, and so can the names that programs choose. So some slots are always left for
/// other names. A name without a slot waits in a queue of limited length.
struct NameTable<Asker> {
    typealias Limits = NameLimits

    enum Reply {
        /// The caller has to begin `starts` now.
        case known(NameAnswer, starts: [NameAttempt])
        /// The answer comes later. The caller has to begin `starts` now.
        case pending(starts: [NameAttempt])
        case refused
    }

    /// Results of an event: the questions to answer, and the look-ups that the caller has to begin.
    struct Step {
        var answers: [(asker: Asker, answer: NameAnswer)] = []
        var starts: [NameAttempt] = []
        /// Whether the caller has to call `delayEnded` after `NameAttempt.resolutionDelay`.
        var delays = false
    }

    private struct Running {
        let family: NameAttempt.Family
        let group: UInt64
        let isFromProgram: Bool
    }

    /// A name with questions, or with look-ups under way.
    private struct Work {
        var isFromProgram: Bool
        var askers: [UInt64: Asker] = [:]
        var running: [UInt64: Running] = [:]
        /// The newest look-ups of the name, which began together: their number, their time, and results so far.
        var group: UInt64 = 0
        var begun = LoopTime(nanoseconds: 0)
        var parts = NameParts()

        func runs(_ family: NameAttempt.Family) -> Bool {
            running.values.contains { $0.group == group && $0.family == family }
        }
    }

    private let limits: NameLimits
    private var work: [String: Work] = [:]
    /// Names that wait for a slot, oldest first.
    private var queue: [String] = []
    private var known: KnownNames
    private var slots = NameSlots()
    private var askers = 0
    private var lastID: UInt64 = 0

    init(_ limits: NameLimits = NameLimits()) {
        self.limits = limits
        known = KnownNames(limits)
    }

    /// - Parameters:
    ///   - isFromProgram: whether a program chose the name.
    ///   - asker: returned by an event, unless `leave` was called with `id`.
    mutating func ask(_ name: String, isFromProgram: Bool, id: UInt64, asker: Asker, now: LoopTime) -> Reply {
        if let answer = known.fresh(name, now) { return .known(answer, starts: []) }
        let isOverdue = work[name].map { !$0.running.isEmpty && now >= $0.begun + limits.patience } ?? false
        if isOverdue, let good = known.good(name, now), let begun = work[name]?.begun {
            return .known(good, starts: now >= begun + limits.answerLife && hasSpare(name) ? begin(name, now) : [])
        }
        guard askers < limits.askers else { return .refused }
        if work[name] == nil {
            let hasRoom = slots.hasRoom(name, isFromProgram: isFromProgram, limits)
            guard hasRoom || queue.count < limits.queue else { return .refused }
            work[name] = Work(isFromProgram: isFromProgram)
        } else if !isFromProgram {
            // A name that the configuration chose may use slots that programs' names may not.
            work[name]?.isFromProgram = false
        }
        work[name]?.askers[id] = asker
        askers += 1
        if work[name]?.running.isEmpty == false {
            return .pending(starts: isOverdue && hasSpare(name) ? begin(name, now) : [])
        }
        if hasSlot(name) {
            queue.removeAll { $0 == name }
            return .pending(starts: begin(name, now))
        }
        if !queue.contains(name) { queue.append(name) }
        return .pending(starts: [])
    }

    /// Removes a question. A look-up that has begun goes on; a waiting look-up is dropped with its last question.
    mutating func leave(_ name: String, id: UInt64) {
        guard work[name]?.askers.removeValue(forKey: id) != nil else { return }
        askers -= 1
        dropIfIdle(name)
    }

    /// Called after a question has waited for `patience`. The last good addresses answer it. Without them, A and AAAA are
    /// asked separately.
    mutating func waitedLong(_ name: String, id: UInt64, now: LoopTime) -> Step {
        var step = Step()
        guard let found = work[name], let asker = found.askers[id] else { return step }
        if let good = known.good(name, now) {
            step.answers = [(asker, good)]
            leave(name, id: id)
        }
        if found.runs(.both), !found.runs(.ipv4), !found.runs(.ipv6), found.parts.isEmpty, hasSpare(name) {
            step.starts = [begin(name, .ipv4), begin(name, .ipv6)]
        }
        return step
    }

    /// Ends a look-up.
    mutating func finish(_ attempt: NameAttempt, _ answer: NameAnswer, now: LoopTime) -> Step {
        let name = attempt.name
        guard var done = work[name], let ended = done.running.removeValue(forKey: attempt.id) else {
            slots.endAbandoned()
            return Step(starts: beginWaiting(now))
        }
        slots.end(name, isFromProgram: ended.isFromProgram)
        let isNewest = ended.group == done.group
        var step = Step()
        switch answer {
        case .success(let addresses) where attempt.family != .both && isNewest:
            done.parts.set(addresses, of: attempt.family)
            work[name] = done
            if attempt.family == .ipv4, done.parts.ipv6 == nil, done.runs(.ipv6) {
                step.delays = true
            } else {
                step.answers = complete(name, .success(done.parts.all), ended.group, now)
            }
        case .success:
            work[name] = done
            step.answers = complete(name, answer, ended.group, now)
        case .failure(let error):
            work[name] = done
            let othersRun = done.running.values.contains { $0.group >= ended.group }
            if error.isFinal && attempt.family == .both && isNewest || !othersRun {
                let found = isNewest && !done.parts.isEmpty
                if !found || !done.askers.isEmpty {
                    step.answers = complete(name, found ? .success(done.parts.all) : answer, ended.group, now)
                }
            }
        }
        dropIfIdle(name)
        step.starts = beginWaiting(now)
        return step
    }

    /// Goes on with the A answer, because the AAAA answer did not come in time.
    mutating func delayEnded(_ attempt: NameAttempt, now: LoopTime) -> Step {
        guard let found = work[attempt.name], !found.parts.isEmpty, !found.askers.isEmpty else { return Step() }
        return Step(answers: complete(attempt.name, .success(found.parts.all), found.group, now))
    }

    /// Begins all look-ups anew, because files of the system's resolver have changed. Look-ups under way no longer count.
    mutating func systemChanged(now: LoopTime) -> Step {
        known.expire(now)
        slots.abandonAll()
        for name in Array(work.keys) {
            work[name]?.running = [:]
            work[name]?.parts = NameParts()
            dropIfIdle(name)
        }
        queue += work.keys.filter { !queue.contains($0) }
        return Step(starts: beginWaiting(now))
    }

    // MARK: Answers

    /// Returns the answers to all questions for the name.
    private mutating func complete(
        _ name: String, _ answer: NameAnswer, _ group: UInt64, _ now: LoopTime
    ) -> [(asker: Asker, answer: NameAnswer)] {
        guard let done = work[name] else { return [] }
        var answer = answer
        if case .failure(let error) = answer, !error.isFinal, let good = known.good(name, now) {
            answer = good
            known.renewGood(name, good, now)
        } else {
            let isSlow = now >= done.begun + limits.patience || done.runs(.ipv6) || done.runs(.ipv4)
            known.keep(name, answer, group: group, isSlow: isSlow, now)
        }
        work[name]?.askers = [:]
        askers -= done.askers.count
        return done.askers.values.map { ($0, answer) }
    }

    private mutating func dropIfIdle(_ name: String) {
        guard let found = work[name], found.running.isEmpty, found.askers.isEmpty else { return }
        work[name] = nil
        queue.removeAll { $0 == name }
    }

    // MARK: Slots

    private mutating func beginWaiting(_ now: LoopTime) -> [NameAttempt] {
        guard !queue.isEmpty else { return [] }
        var starts: [NameAttempt] = []
        for name in queue where work[name]?.running.isEmpty == true && hasSlot(name) { starts += begin(name, now) }
        queue.removeAll { work[$0]?.running.isEmpty != true }
        return starts
    }

    private func hasSlot(_ name: String) -> Bool {
        work[name].map { slots.hasRoom(name, isFromProgram: $0.isFromProgram, limits) } ?? false
    }

    /// Whether a name with look-ups may have further ones. They use only half of the slots.
    private func hasSpare(_ name: String) -> Bool {
        guard let found = work[name], found.running.count < limits.slotsOfName else { return false }
        return slots.hasRoom(name, isFromProgram: found.isFromProgram, limits, share: 2)
    }

    /// Begins the look-ups of a new group.
    private mutating func begin(_ name: String, _ now: LoopTime) -> [NameAttempt] {
        lastID += 1
        work[name]?.group = lastID
        work[name]?.begun = now
        work[name]?.parts = NameParts()
        guard known.isSlow(name), hasSpare(name) else { return [begin(name, .both)] }
        return [begin(name, .ipv4), begin(name, .ipv6)]
    }

    private mutating func begin(_ name: String, _ family: NameAttempt.Family) -> NameAttempt {
        lastID += 1
        let (isFromProgram, group) = work[name].map { ($0.isFromProgram, $0.group) } ?? (true, 0)
        work[name]?.running[lastID] = Running(family: family, group: group, isFromProgram: isFromProgram)
        slots.begin(name, isFromProgram: isFromProgram)
        return NameAttempt(name: name, family: family, id: lastID)
    }
}
