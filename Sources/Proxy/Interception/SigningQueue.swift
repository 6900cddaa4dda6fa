import Cryptography
import Reactor
import Synchronization
import TLSServer

/// Signs certificates for the hosts of an intermediate, each on first use and on a thread that no loop waits for. Keeps
/// those that were used last. Any thread.
final class SigningQueue: Sendable {
    /// Number of contexts kept, of 20 to 60 KiB each.
    static let maxKept = 512
    /// Number of handshakes that wait. A signature takes half a millisecond.
    static let maxWaiting = 512

    private struct Job {
        let key: String
        let host: String
        var decisions: [LateDecision]
    }

    private struct State {
        var kept = RecentlyUsed<TLSServerContext>(limit: SigningQueue.maxKept)
        /// The first one begins next.
        var jobs: [Job] = []
        var waiting = 0
        var isWorking = false
    }

    private let intermediate: SigningIntermediate
    private let state = Mutex(State())

    init(_ intermediate: SigningIntermediate) { self.intermediate = intermediate }

    /// - Parameter host: a name below the intermediate's domains.
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
            // The kernel gives no thread.
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

    /// - Returns: `nil` at the end of the work.
    private func next() -> Job? {
        state.withLock { state in
            guard !state.jobs.isEmpty else {
                state.isWorking = false
                return nil
            }
            return state.jobs.removeFirst()
        }
    }

    /// - Returns: `nil` for a host that no certificate can name, and without memory.
    private func context(for job: Job) -> TLSServerContext? {
        try? TLSServerContext(intermediate.certificate(for: job.host), below: [intermediate.root], job.key)
    }
}
