import Synchronization

/// Sends each event to every stream. A slow reader loses its oldest events; other readers lose nothing.
final class EventBroadcast: Sendable {
    private struct State {
        var nextID: UInt64 = 0
        var readers: [UInt64: AsyncStream<HeimdallrEvent>.Continuation] = [:]
        var isFinished = false
    }

    private let state = Mutex(State())

    func stream() -> AsyncStream<HeimdallrEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: HeimdallrEvent.self, bufferingPolicy: .bufferingNewest(256))
        let id = state.withLock { state -> UInt64? in
            guard !state.isFinished else { return nil }
            state.nextID += 1
            state.readers[state.nextID] = continuation
            return state.nextID
        }
        guard let id else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.remove(id)
        }
        return stream
    }

    func send(_ event: HeimdallrEvent) {
        let readers = state.withLock { Array($0.readers.values) }
        for reader in readers { reader.yield(event) }
    }

    func finish() {
        let readers = state.withLock { state in
            state.isFinished = true
            return Array(state.readers.values)
        }
        for reader in readers { reader.finish() }
    }

    private func remove(_ id: UInt64) {
        state.withLock { $0.readers[id] = nil }
    }
}
