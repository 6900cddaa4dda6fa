import CLibcurl
package import FileSystem
import Glibc
import Reactor
import Synchronization

/// The system's certificate authorities, in the version that new connections use. A changed bundle counts at once: a new
/// process would use it, too. Idle connections of an earlier version serve no further request. Any thread.
package final class SystemAuthorities: Sendable {
    package static let shared = SystemAuthorities(bundle: SystemTrust.current.path)

    private struct State {
        var file = LastGood<MemoryFile, String>()
        var watch: FileWatch?
    }

    /// Path of the bundle; `nil` if libcurl has none.
    package let bundle: String?
    private let state = Mutex<State?>(nil)
    private let count = Atomic<UInt64>(0)
    private let listeners = Mutex<[@Sendable (ReadingOutcome<String>) -> Void]>([])

    init(bundle: String?) { self.bundle = bundle }

    /// Number of the version. Read it before `current`: the connection is then older than it seems, never newer.
    var generation: UInt64 { count.load(ordering: .relaxed) }

    /// A copy of the bundle. Its path differs from those of other versions, so libcurl reuses neither the parsed
    /// authorities nor the TLS sessions of another version. `nil` if the bundle can't be read. The first call reads the
    /// bundle, and begins to watch it.
    package var current: MemoryFile? { state.withLock { started(&$0).file.value } }

    /// Adds a function that is called after each reading, on the watch's thread.
    package func onOutcome(_ told: @escaping @Sendable (ReadingOutcome<String>) -> Void) {
        listeners.withLock { $0.append(told) }
    }

    /// Whether the bundle holds other authorities than connections use, because a change could not be used. Blocks.
    package var isBehind: Bool {
        guard let bundle, let used = state.withLock({ $0?.file.value }) else { return false }
        return (try? MemoryFile(joining: [bundle])).map { !$0.hasSameBytes(as: used) } ?? true
    }

    private func started(_ state: inout State?) -> State {
        if let state { return state }
        var first = State()
        if let bundle {
            if let file = try? MemoryFile(joining: [bundle]) { _ = first.file.take(.init(file)) }
            // Without a watch, the authorities of the start stay in use.
            first.watch = try? FileWatch { [weak self] _ in self?.readAgain() }
            first.watch?.watch([bundle])
        }
        state = first
        return first
    }

    private func readAgain() {
        guard let bundle else { return }
        let outcome = state.withLock { state -> ReadingOutcome<String> in
            var now = started(&state)
            defer { state = now }
            do throws(SystemError) {
                let file = try MemoryFile(joining: [bundle])
                let isSame = now.file.value.map { file.hasSameBytes(as: $0) } ?? false
                guard unsafe isSame || heimdallr_loads_authorities(file.path) == 1 else {
                    return now.file.fail("it holds no certificate, or one that can't be read")
                }
                // After this, connections of the former version serve no further request.
                if !isSame { count.add(1, ordering: .relaxed) }
                return now.file.take(.init(file), isSame: isSame)
            } catch { return now.file.fail("\(error)") }
        }
        for listener in listeners.withLock({ $0 }) { listener(outcome) }
    }
}
