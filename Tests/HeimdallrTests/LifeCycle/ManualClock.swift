import Heimdallr
import Synchronization

/// Time that stands still until a test moves it. Jitter is `chance`.
final class ManualClock: Sendable {
    private struct State {
        var now = ContinuousClock.now
        var wall: Int64 = 1_700_000_000
        var chance = 0.0
        var nextID: UInt64 = 0
        var sleepers: [UInt64: (until: ContinuousClock.Instant, continuation: CheckedContinuation<Void, any Error>)] =
            [:]
    }

    private let state = Mutex(State())

    init(chance: Double = 0) { setChance(chance) }

    var now: ContinuousClock.Instant { state.withLock { $0.now } }
    /// Number of tasks that sleep.
    var sleepers: Int { state.withLock { $0.sleepers.count } }

    var clock: HeimdallrClock {
        HeimdallrClock(
            now: { [self] in now }, wallClock: { [self] in state.withLock { $0.wall } },
            sleep: { [self] in try await sleep(until: $0) }, random: { [self] in state.withLock { $0.chance } })
    }

    func setChance(_ chance: Double) { state.withLock { $0.chance = chance } }

    /// The wall clock alone jumps.
    func jumpWallClock(by seconds: Int64) { state.withLock { $0.wall += seconds } }

    /// Both clocks move, and whoever sleeps until then wakes.
    func advance(by duration: Duration) {
        let woken = state.withLock { state in
            state.now += duration
            state.wall += duration.components.seconds
            let due = state.sleepers.filter { $0.value.until <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.sorted { $0.until < $1.until }.map(\.continuation)
        }
        for continuation in woken { continuation.resume() }
    }

    private func sleep(until instant: ContinuousClock.Instant) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let result: Result<Void, any Error>? = state.withLock { state in
                    if state.now >= instant { return .success(()) }
                    if Task.isCancelled { return .failure(CancellationError()) }
                    state.sleepers[id] = (instant, continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let sleeper = state.withLock { $0.sleepers.removeValue(forKey: id) }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
