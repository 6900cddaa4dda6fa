import Synchronization

/// Bounds the requests under way at authorization servers, with a fair share for each endpoint and each client. Further
/// requests wait. Safe on any thread.
public final class TokenRequestLimiter: Sendable {
    /// The one that every client of this process uses by default.
    public static let shared = TokenRequestLimiter()

    /// Permission to have one request under way. Given back by `release(_:)`.
    struct Slot: Sendable {
        fileprivate let id: RequestQueue.ID
        /// Whether the request had to wait for it.
        let hasWaited: Bool
    }

    private typealias Resumption = (continuation: CheckedContinuation<Slot?, Never>, slot: Slot?)

    private struct State {
        var queue: RequestQueue
        var continuations: [RequestQueue.ID: CheckedContinuation<Slot?, Never>] = [:]
        var alarm: (at: ContinuousClock.Instant, task: Task<Void, Never>)?
        /// Waits that have ended, to be resumed outside the lock.
        var resumptions: [Resumption] = []

        mutating func resume(_ id: RequestQueue.ID, with slot: Slot?) {
            if let continuation = continuations.removeValue(forKey: id) { resumptions.append((continuation, slot)) }
        }
    }

    private let state: Mutex<State>
    let clock: HeimdallrClock

    /// - Parameter clock: the clock of the clients that share it.
    public init(_ limits: TokenRequestLimits = TokenRequestLimits(), clock: HeimdallrClock = .system) {
        self.clock = clock
        state = Mutex(State(queue: RequestQueue(limits)))
    }

    deinit { state.withLock { $0.alarm?.task.cancel() } }

    var waiting: Int { state.withLock { $0.continuations.count } }

    /// Returns an identifier for the share of one client.
    func makeClient() -> RequestQueue.ID { state.withLock { $0.queue.makeID() } }

    /// Waits for a slot.
    /// - Returns: `nil` when the task was cancelled or the deadline passed while it waited.
    func acquire(
        _ requester: RequestQueue.Requester = .init(), until deadline: ContinuousClock.Instant? = nil
    ) async -> Slot? {
        let id = state.withLock { $0.queue.makeID() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                change(entering: id) { state in
                    // Checked under the lock: a cancellation after this finds the waiter in the queue.
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

    /// Tells the queue of an event, and resumes outside the lock those whose wait has ended.
    /// - Parameter newcomer: the request that enters with this event.
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

    /// One alarm at a time, at the earliest moment at which the queue has something to do. It does not keep `self` alive.
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

/// Bounds on the requests that a process has under way at authorization servers.
public struct TokenRequestLimits: Sendable, Hashable {
    /// Requests of all clients that have been under way for less than `slowAfter`.
    public var fresh = 32
    /// Age from which a request no longer counts towards `fresh`, so that hanging servers leave room for others.
    public var slowAfter = Duration.seconds(1)
    /// Requests of all clients, slow ones included.
    public var all = 128
    /// Requests to one authority (scheme, host and port), whatever the clients.
    public var endpoint = 16
    /// Requests of one client, those of its callers included.
    public var client = 12
    /// How many of `endpoint` are for clients without a request under way. Clients whose requests hang leave them to others.
    public var endpointSpare = 4
    /// How many of `all` are for endpoints without a request under way.
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
