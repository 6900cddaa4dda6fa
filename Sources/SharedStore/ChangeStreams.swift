import Synchronization

/// Streams that report changes of clients' rows, and the last known revision of each row. Safe on any thread.
package final class ChangeStreams: Sendable {
    private struct State {
        var streams: [UInt64: (client: String, stream: AsyncStream<Void>.Continuation)] = [:]
        var lastNumber: UInt64 = 0
        var revisions: [String: UInt64] = [:]
        /// Clients whose rows had a mark at the last poll.
        var marked: Set<String> = []
    }

    private let state = Mutex(State())

    package init() {}

    package func changes(client: String) -> AsyncStream<Void> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { stream in
            let number = state.withLock { state in
                state.lastNumber += 1
                state.streams[state.lastNumber] = (client, stream)
                return state.lastNumber
            }
            stream.onTermination = { [weak self] _ in
                self?.state.withLock { state in _ = state.streams.removeValue(forKey: number) }
            }
        }
    }

    package var clients: Set<String> { state.withLock { Set($0.streams.values.map(\.client)) } }

    /// Notes a revision that this process has read or written, without reporting a change.
    package func know(_ revision: UInt64, of client: String) {
        state.withLock { $0.revisions[client] = max(revision, $0.revisions[client] ?? 0) }
    }

    /// Notes a polled row. Reports a change if the revision differs, or the mark of the last poll was removed.
    package func saw(_ revision: UInt64, isMarked: Bool, of client: String) {
        let isChange = state.withLock { state in
            let isFreed = state.marked.contains(client) && !isMarked
            if isMarked { state.marked.insert(client) } else { state.marked.remove(client) }
            return state.revisions.updateValue(revision, forKey: client) != revision || isFreed
        }
        if isChange { tell { $0 == client } }
    }

    /// Reports a change on the streams of the clients for which `isChanged` returns `true`.
    package func tell(_ isChanged: (String) -> Bool = { _ in true }) {
        for entry in state.withLock({ Array($0.streams.values) }) where isChanged(entry.client) { entry.stream.yield() }
    }

    package func finish() {
        let streams = state.withLock { state in
            defer { state.streams = [:] }
            return state.streams.values.map(\.stream)
        }
        for stream in streams { stream.finish() }
    }
}
