import Synchronization

/// The places of one listener. A connection that has nothing to be answered makes room at once for a new one, the one
/// that has waited longest first; and requests that may take their time never have all places, so that there is
/// always one for a probe. Any thread.
final class ConnectionRoom: Sendable {
    static let capacity = 256
    /// Of these, how many only probes may be busy with.
    static let keptForProbes = 64

    enum Duty: Equatable {
        /// No whole request is there: nothing came yet, a part of one, or the last one is answered.
        case waiting
        /// Its answer is there, and the client does not take it.
        case stalled
        /// A probe is being answered.
        case probe
        /// Something else is being answered.
        case other
    }

    private struct Place {
        var duty = Duty.waiting
        /// Rises: who came to its duty first has the least.
        var since: UInt64
        let close: @Sendable () -> Void
    }

    private struct State {
        var places: [UInt64: Place] = [:]
        var next: UInt64 = 0
        var others = 0

        mutating func tick() -> UInt64 {
            next += 1
            return next
        }
    }

    private let state = Mutex(State())

    /// Somebody has connected.
    /// - Parameter close: ends the connection, from any thread.
    /// - Returns: how to speak of it from now on; `nil` when there is no place: all are busy.
    func enter(_ close: @escaping @Sendable () -> Void) -> UInt64? {
        let (id, leaver) = state.withLock { state -> (UInt64?, (@Sendable () -> Void)?) in
            var leaver: (@Sendable () -> Void)?
            if state.places.count >= Self.capacity {
                guard let id = Self.leaver(state) else { return (nil, nil) }
                leaver = state.places[id]?.close
                Self.remove(id, &state)
            }
            let id = state.tick()
            state.places[id] = Place(since: id, close: close)
            return (id, leaver)
        }
        leaver?()
        return id
    }

    /// - Returns: `false`, with nothing changed, when as many requests that are no probes are under way as may be.
    @discardableResult
    func set(_ id: UInt64, _ duty: Duty) -> Bool {
        state.withLock { state in
            guard let place = state.places[id], place.duty != duty else { return true }
            if duty == .other, state.others >= Self.capacity - Self.keptForProbes { return false }
            state.others += (duty == .other ? 1 : 0) - (place.duty == .other ? 1 : 0)
            let since = state.tick()
            state.places[id]?.duty = duty
            state.places[id]?.since = since
            return true
        }
    }

    func leave(_ id: UInt64) { state.withLock { Self.remove(id, &$0) } }

    var count: Int { state.withLock { $0.places.count } }

    private static func remove(_ id: UInt64, _ state: inout State) {
        guard let place = state.places.removeValue(forKey: id) else { return }
        if place.duty == .other { state.others -= 1 }
    }

    private static func leaver(_ state: State) -> UInt64? {
        for duty in [Duty.waiting, .stalled] {
            let idle = state.places.lazy.filter { $0.value.duty == duty }
            if let first = idle.min(by: { $0.value.since < $1.value.since }) { return first.key }
        }
        return nil
    }
}
