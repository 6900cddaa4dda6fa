import Synchronization

/// Limits the concurrent requests to authorization servers, with a fair share for each endpoint and each client.
/// Further requests wait. Safe on any thread.
public final class TokenRequestLimiter: Sendable {
    /// The limiter that all clients of this process share by default.
    public static let shared = TokenRequestLimiter()

    /// Permission for one request under way. `release(_:)` returns it.
    struct Slot: Sendable {
        fileprivate let id: RequestQueue.ID
        /// Whether the request had to wait for the slot.
        let hasWaited: Bool
    }

    private typealias Resumption = (continuation: CheckedContinuation<Slot?, Never>, slot: Slot?)

    private struct State {
        var queue: RequestQueue
        var continuations: [RequestQueue.ID: CheckedContinuation<Slot?, Never>] = [:]
        var alarm: (at: ContinuousClock.Instant, task: Task<Void, Never>)?
        /// Continuations of waits that have ended. They are resumed outside the lock.
        var resumptions: [Resumption] = []

        mutating func resume(_ id: RequestQueue.ID, with slot: Slot?) {
            if let continuation = continuations.removeValue(forKey: id) { resumptions.append((continuation, slot)) }
        }
    }

    private let state: Mutex<State>
    let clock: HeimdallrClock

    /// The clock is that of the clients that share this limiter.
    public init(_ limits: TokenRequestLimits = TokenRequestLimits(), clock: HeimdallrClock = .system) {
        self.clock = clock
        state = Mutex(State(queue: RequestQueue(limits)))
    }

    deinit { state.withLock { $0.alarm?.task.cancel() } }

    var waiting: Int { state.withLock { $0.continuations.count } }

    /// Returns an identifier by which the queue knows one client.
    func makeClient() -> RequestQueue.ID { state.withLock { $0.queue.makeID() } }

    /// Waits for a slot.
    /// - Returns: `nil` if the task was cancelled or the deadline passed during the wait.
    func acquire(
        _ requester: RequestQueue.Requester = .init(), until deadline: ContinuousClock.Instant? = nil
    ) async -> Slot? {
        let id = state.withLock { $0.queue.makeID() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                change(entering: id) { state in
                    // Checked under the lock. A later cancellation finds the waiter in the queue.
                    guard !Task.isCancelled else { return state.resumptions.append((continuation, nil)) }
                    state.queue.enter(id, requester, until: deadline)
                    state.continuations[id] = continuation
                }
            }
        } onCancel: {
            change { if $0.queue.leave(id) { $0.resume(id, with: nil) } }
        }
    }

    func release(_ slot: Slot) { change { $0.queue.finish(slot.id) } }

    /// Passes an event to the queue. Then resumes, outside the lock, the requests whose wait has ended.
    /// - Parameter newcomer: the request that enters the queue with this event.
    private func change(entering newcomer: RequestQueue.ID? = nil, _ event: (inout State) -> Void) {
        let now = clock.now()
        let resumptions: [Resumption] = state.withLock { state in
            event(&state)
            for id in state.queue.expire(now: now) { state.resume(id, with: nil) }
            for id in state.queue.admit(now: now) { state.resume(id, with: Slot(id: id, hasWaited: id != newcomer)) }
            setAlarm(&state, now)
            defer { state.resumptions = [] }
            return state.resumptions
        }
        for resumption in resumptions { resumption.continuation.resume(returning: resumption.slot) }
    }

    /// Sets the one alarm to the earliest time at which the queue has work. The alarm does not keep `self` alive.
    private func setAlarm(_ state: inout State, _ now: ContinuousClock.Instant) {
        let wake = state.queue.wake(now: now)
        if let alarm = state.alarm, let wake, alarm.at <= wake { return }
        state.alarm?.task.cancel()
        state.alarm = wake.map { wake in
            let task = Task.detached { [weak self, clock] in
                do { try await clock.sleep(wake) } catch { return }
                self?.change { if $0.alarm?.at == wake { $0.alarm = nil } }
            }
            return (wake, task)
        }
    }
}

/// Limits on a process's concurrent requests to authorization servers.
public struct TokenRequestLimits: Sendable, Hashable {
    /// Largest number of requests, of all clients together, that have been under way for less than `slowAfter`.
    public var fresh = 32
    /// Age at which a request no longer counts towards `fresh`, so that hanging servers leave room for other servers.
    public var slowAfter = Duration.seconds(1)
    /// Largest number of requests of all clients, including slow requests.
    public var all = 128
    /// Largest number of requests of all clients to one authority (scheme, host and port).
    public var endpoint = 16
    /// Largest number of requests of one client, including exchanges of its callers' tokens.
    public var client = 12
    /// Number of the slots of `endpoint` that are reserved for clients without a request under way.
    public var endpointSpare = 4
    /// Number of the slots of `all` that are reserved for endpoints without a request under way.
    public var allSpare = 32

    /// The limits of `TokenRequestLimiter.shared`.
    public init() {}

    /// One request at a time.
    static let one: TokenRequestLimits = {
        var limits = TokenRequestLimits()
        limits.all = 1
        limits.allSpare = 0
        return limits
    }()
}
