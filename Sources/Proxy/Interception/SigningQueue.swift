import Cryptography
import Reactor
import Synchronization
import TLSServer

/// Signs certificates by an intermediate authority, each on first use and on a separate thread. Keeps the recently used
/// certificates. Any thread.
final class SigningQueue: Sendable {
    /// Limit of contexts kept, of 20 to 60 KiB each.
    static let maxKept = 512
    /// Limit of waiting handshakes. A signature takes half a millisecond.
    static let maxWaiting = 512

    private struct Job {
        let key: String
        let host: String
        var decisions: [LateDecision]
    }

    private struct State {
        var kept = RecentlyUsed<TLSServerContext>(limit: SigningQueue.maxKept)
        /// Jobs that have not begun, oldest first.
        var jobs: [Job] = []
        var waiting = 0
        var isWorking = false
    }

    private let intermediate: SigningIntermediate
    private let state = Mutex(State())

    init(_ intermediate: SigningIntermediate) { self.intermediate = intermediate }

    /// - Parameter host: name in a domain of the intermediate.
    func choice(for host: String, listener: Int) -> ContextChoice {
        let key = "\(listener) \(host)"
        if let known = state.withLock({ $0.kept.value(for: key) }) { return .serve(known) }
        return .later { [self] in add($0, key, host) }
    }

    private func add(_ decision: LateDecision, _ key: String, _ host: String) {
        let (isFull, begins) = state.withLock { state in
            guard state.waiting < Self.maxWaiting else { return (true, false) }
            state.waiting += 1
            if let index = state.jobs.firstIndex(where: { $0.key == key }) {
                state.jobs[index].decisions.append(decision)
            } else {
                state.jobs.append(Job(key: key, host: host, decisions: [decision]))
            }
            defer { state.isWorking = true }
            return (false, !state.isWorking)
        }
        if isFull { return decision.decide(nil) }
        guard begins else { return }
        do throws(SystemError) { try startThread("signing") { [self] in work(context) } } catch {
            // Without a thread, all waiting handshakes are refused.
            work { _ in nil }
        }
    }

    private func work(_ make: (Job) -> TLSServerContext?) {
        while let job = next() {
            let made = state.withLock { $0.kept.value(for: job.key) } ?? make(job)
            state.withLock { state in
                if let made { state.kept.set(made, for: job.key) }
                state.waiting -= job.decisions.count
            }
            for decision in job.decisions { decision.decide(made) }
        }
    }

    /// - Returns: `nil` when no job is left.
    private func next() -> Job? {
        state.withLock { state in
            guard !state.jobs.isEmpty else {
                state.isWorking = false
                return nil
            }
            return state.jobs.removeFirst()
        }
    }

    /// - Returns: `nil` for a host that no certificate can name, or if memory is lacking.
    private func context(for job: Job) -> TLSServerContext? {
        try? TLSServerContext(intermediate.certificate(for: job.host), below: [intermediate.root], job.key)
    }
}
