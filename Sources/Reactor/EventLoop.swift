import CLinux
import Glibc
import Synchronization

/// An event loop for descriptors, timers and jobs from other threads, with one thread and one epoll. It is a serial
/// executor, so actors can run on the loop.
///
/// `execute`, `stop` and the executor's functions may be called from any thread; all other members only on the loop's
/// thread.
public final class EventLoop: SerialExecutor, @unchecked Sendable {
    // @unchecked: mutable state is either behind `inbox` or touched by the loop's thread alone.
    private enum Job {
        case closure(@Sendable () -> Void)
        case executorJob(UnownedJob)
        case release(HeldObject)
    }
    private struct Inbox {
        var jobs: [Job] = []
        var isStopped = false
        /// Whether the loop's thread has ended, so that the loop's objects may be released on any thread.
        var isOver = false
    }
    private struct Slot {
        var handler: (any ReadinessHandler)?
        /// Distinguishes a late event of a closed descriptor from events of a new descriptor with the same number.
        var generation: UInt32 = 0
    }

    public let name: String
    private let epoll: Int32
    private let wakeUp: WakeUp
    private let inbox = Mutex(Inbox())
    private let thread = Atomic<UInt>(0)

    private var slots: [Slot] = []
    var timers = TimerQueue()
    private var due: [TimerState] = []
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var turnEnd: [any TurnEndHandler] = []
    private var turnEndSpare: [any TurnEndHandler] = []
    private var nextTurn: [any NextTurnHandler] = []
    private var woken = LoopTime.current()
    /// Time of the loop's last wake-up.
    public var now: LoopTime { woken }
    public private(set) var lag = LoopLag()
    private var residents: [ObjectIdentifier: AnyObject] = [:]

    /// - Throws: `SystemError` when the kernel refuses a descriptor.
    public init(name: String = "") throws(SystemError) {
        self.name = name
        epoll = try check("epoll_create1", epoll_create1(heimdallr_epoll_cloexec))
        wakeUp = try WakeUp()
        try control(EPOLL_CTL_ADD, wakeUp.descriptor, generation: 0)
    }

    deinit { close(epoll) }

    /// Starts the loop on a new thread, which holds the loop until `stop`.
    public static func start(name: String) throws(SystemError) -> EventLoop {
        let loop = try EventLoop(name: name)
        try startThread(name) { loop.run() }
        return loop
    }

    // MARK: From any thread

    /// Runs `job` on the loop's thread, after all earlier jobs. After the loop's end, the job is dropped.
    public func execute(_ job: @escaping @Sendable () -> Void) { post(.closure(job)) }

    public func enqueue(_ job: consuming ExecutorJob) { post(.executorJob(UnownedJob(job))) }

    /// Ends the loop after the jobs in its queue.
    public func stop() {
        inbox.withLock { $0.isStopped = true }
        wakeUp.wake()
    }

    /// Releases an object on the loop's thread, because its `deinit` may use the loop. After the loop's end, releases
    /// the object on the caller's thread.
    func release(_ object: HeldObject) {
        guard !isOnLoop else { return object.release() }
        let isOver = inbox.withLock { inbox in
            if !inbox.isOver { inbox.jobs.append(.release(object)) }
            return inbox.isOver
        }
        isOver ? object.release() : wakeUp.wake()
    }

    private func post(_ job: sending Job) {
        let isFirst = inbox.withLock { inbox in
            guard !inbox.isOver else { return false }
            inbox.jobs.append(job)
            return inbox.jobs.count == 1
        }
        if isFirst && !isOnLoop { wakeUp.wake() }
    }

    public var isOnLoop: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

    public func preconditionOnLoop() { precondition(isOnLoop, "called off the event loop's thread") }

    public func checkIsolated() { preconditionOnLoop() }

    // MARK: Descriptors

    /// Watches a non-blocking descriptor for all events, edge-triggered, and holds the handler, until `unregister`.
    public func register(_ descriptor: Int32, handler: any ReadinessHandler) throws(SystemError) {
        let index = Int(descriptor)
        while slots.count <= index { slots.append(Slot()) }
        slots[index].generation &+= 1
        try control(EPOLL_CTL_ADD, descriptor, generation: slots[index].generation)
        slots[index].handler = handler
    }

    /// Gives a watched descriptor another handler. epoll reports the current readiness again, to the new handler.
    public func change(_ descriptor: Int32, to handler: any ReadinessHandler) throws(SystemError) {
        let index = Int(descriptor)
        slots[index].generation &+= 1
        try control(EPOLL_CTL_MOD, descriptor, generation: slots[index].generation)
        slots[index].handler = handler
    }

    /// Ends the watch. The caller closes the descriptor afterwards.
    public func unregister(_ descriptor: Int32) {
        let index = Int(descriptor)
        guard index < slots.count, slots[index].handler != nil else { return }
        slots[index].handler = nil
        slots[index].generation &+= 1
        _ = epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
    }

    private func control(_ operation: Int32, _ descriptor: Int32, generation: UInt32) throws(SystemError) {
        var event = unsafe epoll_event()
        unsafe event.events = heimdallr_epoll_all
        unsafe event.data.u64 = UInt64(generation) << 32 | UInt64(UInt32(descriptor))
        let result = unsafe epoll_ctl(epoll, operation, descriptor, &event)
        try check("epoll_ctl", result)
    }

    /// Calls `handler` once at the end of this turn. A handler must not be added twice in one turn.
    public func atTurnEnd(_ handler: any TurnEndHandler) { turnEnd.append(handler) }

    /// Calls `handler` once in the next turn, which begins without waiting for events.
    public func atNextTurn(_ handler: any NextTurnHandler) { nextTurn.append(handler) }

    /// Returns this loop's only object of the type. The loop holds it until the loop's end.
    /// - Parameter make: called if the loop has no such object yet.
    public func resident<Object: AnyObject>(_ make: () -> Object) -> Object {
        let key = ObjectIdentifier(Object.self)
        if let object = residents[key] as? Object { return object }
        let object = make()
        residents[key] = object
        return object
    }

    // MARK: The loop

    private func run() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
        let capacity = 256
        let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: capacity)
        defer { unsafe events.deallocate() }
        while true {
            let stopped = runJobs()
            finishTurn()
            if stopped { break }
            let count = unsafe epoll_wait(epoll, events, Int32(capacity), waitMilliseconds())
            woken = .current()
            lag.woke(at: woken, hasEvents: count > 0)
            for index in 0..<max(0, Int(count)) {
                let event = unsafe events[index]
                dispatch(unsafe event.data.u64, Readiness(rawValue: unsafe event.events))
            }
            fireTimers()
            if !nextTurn.isEmpty { runNextTurn() }
        }
        end()
    }

    /// Fires the due timers. A timer that is set meanwhile waits for the next turn.
    private func fireTimers() {
        timers.popDue(now, into: &due)
        guard !due.isEmpty else { return }
        for timer in due { timer.fire(now) }
        due.removeAll(keepingCapacity: true)
    }

    /// Releases all handlers and jobs on the loop's thread.
    private func end() {
        let handlers = slots
        slots = []
        turnEnd = []
        nextTurn = []
        timers = TimerQueue()
        withExtendedLifetime(handlers) {}
        residents = [:]
        while true {
            let jobs = inbox.withLock { inbox in
                let jobs = inbox.jobs
                inbox.jobs = []
                inbox.isOver = jobs.isEmpty
                return jobs
            }
            if jobs.isEmpty { return }
            for case .release(let object) in jobs { object.release() }
        }
    }

    private func dispatch(_ key: UInt64, _ readiness: Readiness) {
        let index = Int(UInt32(truncatingIfNeeded: key))
        if index == Int(wakeUp.descriptor) { return wakeUp.clear() }
        guard index < slots.count, slots[index].generation == UInt32(truncatingIfNeeded: key >> 32) else { return }
        slots[index].handler?.ready(readiness)
    }

    /// Runs the jobs in the queue. Jobs that are added meanwhile wait for the next turn.
    /// - Returns: whether `stop` was called and the queue was empty.
    private func runJobs() -> Bool {
        let (jobs, isStopped) = inbox.withLock { inbox in
            let jobs = inbox.jobs
            inbox.jobs.removeAll(keepingCapacity: true)
            return (jobs, inbox.isStopped)
        }
        for job in jobs {
            switch job {
            case .closure(let body): body()
            case .executorJob(let job): unsafe job.runSynchronously(on: asUnownedSerialExecutor())
            case .release(let object): object.release()
            }
        }
        return isStopped && jobs.isEmpty
    }

    /// Time limit for next-turn handlers in one turn, in nanoseconds. The remaining handlers run in the next turn, in
    /// the same order, followed by newly added handlers.
    private static let nextTurnShare: UInt64 = 5_000_000

    private func runNextTurn() {
        let handlers = nextTurn
        nextTurn = []
        let begin = LoopTime.current()
        for (index, handler) in handlers.enumerated() {
            // At least one handler runs in each turn.
            if index > 0, LoopTime.current().nanoseconds &- begin.nanoseconds >= Self.nextTurnShare {
                nextTurn = Array(handlers[index...]) + nextTurn
                return
            }
            handler.nextTurn()
        }
    }

    private func finishTurn() {
        guard !turnEnd.isEmpty else { return }
        swap(&turnEnd, &turnEndSpare)
        for handler in turnEndSpare { handler.turnEnded() }
        turnEndSpare.removeAll(keepingCapacity: true)
    }

    private func waitMilliseconds() -> Int32 {
        if !nextTurn.isEmpty || !turnEnd.isEmpty || inbox.withLock({ !$0.jobs.isEmpty || $0.isStopped }) { return 0 }
        let next = min(timers.next ?? lag.due, lag.due)
        guard next.nanoseconds != .max else { return -1 }
        // Counted from the last wake-up (`now`), so the wait may be too long by the handlers' time in this turn.
        guard next > now else { return 0 }
        return Int32(min(UInt64(Int32.max), (next.nanoseconds - now.nanoseconds - 1) / 1_000_000 + 1))
    }
}

extension EventLoop {
    /// Runs `body` on the loop and waits for its result. Must not be called on the loop.
    public func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            execute { continuation.resume(with: Result { try body() }) }
        }
    }
}
