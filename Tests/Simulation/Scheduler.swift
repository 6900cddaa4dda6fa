import Glibc

/// Runs all Swift tasks of this process on one thread, in an order that its seed decides. Time passes only when no task is
/// ready. A sleep that is not the simulation's is an escape, and fails the run.
final class Scheduler: @unchecked Sendable {
    static let shared = Scheduler()

    private struct Timer {
        var at: ContinuousClock.Instant
        var number: Int
        var action: () -> Void
    }

    let start = ContinuousClock.now
    private(set) var now: ContinuousClock.Instant
    var chance = Chance(0)
    /// Number of jobs run so far.
    private(set) var steps = 0
    /// The function by which work left the simulation.
    private(set) var escape: String?
    private var jobs: [UnownedJob] = []
    /// A binary heap, the earliest first.
    private var timers: [Timer] = []
    private var lastNumber = 0
    private let executor = Inline()

    private init() { now = start }

    /// Milliseconds since the run began.
    var milliseconds: Int {
        let (seconds, attoseconds) = start.duration(to: now).components
        return Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
    }

    func begin(seed: UInt64) {
        chance = Chance(seed)
        now = start
        steps = 0
        escape = nil
        jobs = []
        timers = []
        lastNumber = 0
    }

    // MARK: Time

    func at(_ instant: ContinuousClock.Instant, _ action: @escaping () -> Void) {
        lastNumber += 1
        timers.append(Timer(at: max(instant, now), number: lastNumber, action: action))
        var child = timers.count - 1
        while child > 0, isEarlier(child, (child - 1) / 2) {
            timers.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    func after(_ duration: Duration, _ action: @escaping () -> Void) { at(now + duration, action) }

    private func isEarlier(_ one: Int, _ other: Int) -> Bool {
        (timers[one].at, timers[one].number) < (timers[other].at, timers[other].number)
    }

    private func popTimer() -> Timer? {
        guard let first = timers.first, let last = timers.popLast() else { return nil }
        guard !timers.isEmpty else { return first }
        timers[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < timers.count && isEarlier(child, least) {
                least = child
            }
            guard least != parent else { return first }
            timers.swapAt(parent, least)
            parent = least
        }
    }

    // MARK: Tasks

    /// Runs ready tasks, then lets time pass, until `isOver` or the end of all work.
    /// - Returns: `false`: tasks go on for ever while time stands still.
    @discardableResult
    func run(until isOver: () -> Bool, afterEachStep check: () -> Void) -> Bool {
        var stepsNow = 0
        while !isOver() {
            if !jobs.isEmpty {
                let index = chance.below(jobs.count)
                jobs.swapAt(index, jobs.count - 1)
                let job = jobs.removeLast()
                steps += 1
                stepsNow += 1
                guard stepsNow < 100_000 else { return false }
                job.runSynchronously(on: executor.asUnownedTaskExecutor())
                check()
            } else if let timer = popTimer() {
                if timer.at > now { stepsNow = 0 }
                now = timer.at
                timer.action()
            } else {
                return true
            }
        }
        return true
    }

    /// Takes the place of Swift's global executor, by the hook that its run-time library has for it.
    func install() {
        typealias Original = @convention(thin) (UnownedJob) -> Void
        typealias Hook = @convention(thin) (UnownedJob, Original) -> Void
        guard let symbol = dlsym(dlopen(nil, RTLD_NOW), "swift_task_enqueueGlobal_hook") else {
            fatalError("Swift has no hook for tasks")
        }
        symbol.assumingMemoryBound(to: Hook?.self).pointee = { job, _ in Scheduler.shared.jobs.append(job) }
    }

    /// The work never runs, and the run fails.
    fileprivate func escaped(by function: String) { escape = escape ?? function }

    private final class Inline: TaskExecutor {
        func enqueue(_ job: consuming ExecutorJob) { Scheduler.shared.jobs.append(UnownedJob(job)) }
    }
}

// In place of libdispatch's functions of these names: timers and queues, which Swift has no hook for.

@_cdecl("dispatch_after_f")
public func dispatchAfter(
    _ when: UInt64, _ queue: UnsafeRawPointer?, _ context: UnsafeRawPointer?, _ work: UnsafeRawPointer?
) { Scheduler.shared.escaped(by: "Task.sleep (dispatch_after_f)") }

@_cdecl("dispatch_async")
public func dispatchAsync(_ queue: UnsafeRawPointer?, _ work: UnsafeRawPointer?) {
    Scheduler.shared.escaped(by: "DispatchQueue.async (dispatch_async)")
}
