import Synchronization

/// Sends each event to every stream and every observer. A slow reader loses its own oldest events.
final class EventBroadcast: Sendable {
    private struct State {
        var lastID: UInt64 = 0
        var readers: [UInt64: AsyncStream<HeimdallrEvent>.Continuation] = [:]
        var observers: [EventObserver] = []
        var isFinished = false
    }

    private let state = Mutex(State())

    func add(_ observer: EventObserver) { state.withLock { if !$0.isFinished { $0.observers.append(observer) } } }

    func stream() -> AsyncStream<HeimdallrEvent> {
        AsyncStream(bufferingPolicy: .bufferingNewest(EventObserver.backlog)) { reader in
            let id = state.withLock { state -> UInt64? in
                guard !state.isFinished else { return nil }
                state.lastID += 1
                state.readers[state.lastID] = reader
                return state.lastID
            }
            guard let id else { return reader.finish() }
            reader.onTermination = { [weak self] _ in self?.state.withLock { $0.readers[id] = nil } }
        }
    }

    func send(_ event: HeimdallrEvent) {
        let (readers, observers) = state.withLock { (Array($0.readers.values), $0.observers) }
        for reader in readers { reader.yield(event) }
        for observer in observers { observer.tell(event) }
    }

    func finish() {
        let readers = state.withLock { state in
            state.isFinished = true
            state.observers = []
            return Array(state.readers.values)
        }
        for reader in readers { reader.finish() }
    }
}
