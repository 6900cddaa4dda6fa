import Proxy
import Reports
import Synchronization

/// Programs that rejected the proxy's certificate within the last day. Any thread.
final class UntrustingPrograms: Sendable {
    private struct Entry {
        var failure: FailedHandshake
        var count = 1
        var last = ContinuousClock.now

        func isLike(_ other: FailedHandshake) -> Bool {
            failure.target == other.target && failure.caller == other.caller && failure.program == other.program
        }
    }

    private static let limit = 20
    /// Time after which a failure is no longer shown.
    private static let memory = Duration.seconds(86_400)

    /// Entries, the oldest first.
    private let entries = Mutex<[Entry]>([])

    func note(_ failure: FailedHandshake) {
        guard failure.isDistrust else { return }
        entries.withLock { entries in
            var entry = Entry(failure: failure)
            if let index = entries.firstIndex(where: { $0.isLike(failure) }) {
                entry.count += entries.remove(at: index).count
            }
            if entries.count >= Self.limit { entries.removeFirst() }
            entries.append(entry)
        }
    }

    /// The programs, the latest first.
    var current: [UntrustingProgram] {
        let now = ContinuousClock.now
        return entries.withLock { $0 }.reversed().compactMap { entry in
            let ago = entry.last.duration(to: now)
            guard ago < Self.memory else { return nil }
            return UntrustingProgram(
                target: entry.failure.target, caller: entry.failure.caller, program: entry.failure.program,
                reason: entry.failure.reason, advice: entry.failure.remedy, count: entry.count, ago: ago)
        }
    }
}

extension FailedHandshake {
    /// The advice, with the variable that this kind of program needs.
    var remedy: String { advice(TrustVariable.need(of: program)) }
}
