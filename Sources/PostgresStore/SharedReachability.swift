import Heimdallr
import Synchronization

/// `Reachability` for all connections of a store.
final class SharedReachability: Sendable {
    typealias Instant = ContinuousClock.Instant

    private let state = Mutex(Reachability())

    func mayTry() -> Bool { state.withLock { $0.mayTry(now: .now) } }

    /// Time until the next attempt.
    var pause: Duration {
        let now = Instant.now
        return max(.milliseconds(20), now.duration(to: state.withLock { $0.nextTry(now: now) }))
    }

    func broke() { state.withLock { $0.broke() } }

    var isInGrace: Bool { state.withLock { $0.isInGrace(now: .now) } }

    var fault: PostgresFault? { state.withLock { $0.fault } }

    /// - Throws: the last `PostgresFault` until the next attempt is due.
    func refuseWhenKnownAway() throws(PostgresFault) {
        guard let fault = state.withLock({ $0.isKnownAway(now: .now) ? $0.fault : nil }) else { return }
        throw fault
    }

    /// Opens the connection, unless an attempt failed a moment ago.
    func open(_ link: PostgresLink, by deadline: Instant) throws(PostgresFault) {
        guard !link.isOpen else { return }
        guard mayTry() else { throw fault ?? .lost("another attempt to reach it is under way") }
        try opening { () throws(PostgresFault) in try link.open(by: deadline) }
    }

    /// Notes the outcome of an attempt to connect.
    func opening(_ body: () throws(PostgresFault) -> Void) throws(PostgresFault) {
        do throws(PostgresFault) {
            try body()
            state.withLock { $0.succeeded(now: .now) }
        } catch {
            state.withLock { $0.failed(error, now: .now, random: .random(in: 0..<1)) }
            throw error
        }
    }
}
