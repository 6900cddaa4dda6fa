import Synchronization

/// Limits how many token requests run at once; the others wait in line. Safe on any thread.
public final class TokenRequestLimiter: Sendable {
    /// The one that every client of this process uses by default: at most 16 token requests at once.
    public static let shared = TokenRequestLimiter(limit: 16)

    private struct State {
        var free: Int
        var nextID: UInt64 = 0
        var line: [(id: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []
    }

    private let state: Mutex<State>

    /// - Parameter limit: how many may run at once; at least 1, whatever is said.
    public init(limit: Int) {
        state = Mutex(State(free: max(1, limit)))
    }

    /// Waits for a place; give it back with one `release()`. A waiter whose task is cancelled leaves the line.
    /// - Throws: `CancellationError` when the task is cancelled while it waits.
    func acquire() async throws(CancellationError) {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        let admitted = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let admitted: Bool? = state.withLock { state in
                    if state.free > 0 {
                        state.free -= 1
                        return true
                    }
                    // Checked under the lock: a cancellation after this finds the waiter in line.
                    if Task.isCancelled { return false }
                    state.line.append((id, continuation))
                    return nil
                }
                if let admitted { continuation.resume(returning: admitted) }
            }
        } onCancel: {
            leave(id)
        }
        if !admitted { throw CancellationError() }
    }

    func release() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            if state.line.isEmpty {
                state.free += 1
                return nil
            }
            return state.line.removeFirst().continuation
        }
        next?.resume(returning: true)
    }

    private func leave(_ id: UInt64) {
        let left = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard let index = state.line.firstIndex(where: { $0.id == id }) else { return nil }
            return state.line.remove(at: index).continuation
        }
        left?.resume(returning: false)
    }
}
