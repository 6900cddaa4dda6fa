import CLibcurl
import Glibc
import Reactor
import Synchronization

/// The system's certificate authorities, in the version that new connections use. A changed bundle counts at once: a new
/// process would use it, too. Idle connections of an earlier version serve no further request. Any thread.
package final class SystemAuthorities: Sendable {
    package static let shared = SystemAuthorities(bundle: SystemTrust.current.path)

    /// Outcome of reading a changed bundle.
    package enum Change: Sendable, Equatable {
        case replaced
        /// The last good version stays in use.
        case unusable(reason: String)
    }

    private struct State {
        var file: MemoryFile?
        var watch: FileWatch?
        var isFaulty = false
    }

    /// Path of the bundle; `nil` if libcurl has none.
    package let bundle: String?
    private let state = Mutex<State?>(nil)
    private let count = Atomic<UInt64>(0)
    private let listeners = Mutex<[@Sendable (Change) -> Void]>([])

    init(bundle: String?) { self.bundle = bundle }

    /// Number of the version. Read it before `current`: the connection is then older than it seems, never newer.
    var generation: UInt64 { count.load(ordering: .relaxed) }

    /// A copy of the bundle. Its path differs from those of other versions, so libcurl reuses neither the parsed
    /// authorities nor the TLS sessions of another version. `nil` if the bundle can't be read. The first call reads the
    /// bundle, and begins to watch it.
    package var current: MemoryFile? { state.withLock { started(&$0).file } }

    /// Adds a function that is called after each change, on the watch's thread.
    package func onChange(_ changed: @escaping @Sendable (Change) -> Void) {
        listeners.withLock { $0.append(changed) }
    }

    /// Whether the bundle holds other authorities than connections use, because a change could not be used. Blocks.
    package var isBehind: Bool {
        guard let bundle, let used = state.withLock({ $0?.file }) else { return false }
        return (try? MemoryFile(joining: [bundle])).map { !$0.hasSameBytes(as: used) } ?? true
    }

    private func started(_ state: inout State?) -> State {
        if let state { return state }
        var first = State()
        if let bundle {
            first.file = try? MemoryFile(joining: [bundle])
            // Without a watch, the authorities of the start stay in use.
            first.watch = try? FileWatch { [weak self] _ in self?.readAgain() }
            first.watch?.watch([bundle])
        }
        state = first
        return first
    }

    private func readAgain() {
        guard let bundle else { return }
        var change: Change?
        state.withLock { state in
            var now = started(&state)
            do throws(SystemError) {
                let file = try MemoryFile(joining: [bundle])
                if let former = now.file, file.hasSameBytes(as: former) {
                    now.isFaulty = false
                } else if unsafe heimdallr_loads_authorities(file.path) == 1 {
                    now.file = file
                    now.isFaulty = false
                    change = .replaced
                    // After this, connections of the former version serve no further request.
                    state = now
                    count.add(1, ordering: .relaxed)
                } else if !now.isFaulty {
                    now.isFaulty = true
                    change = .unusable(reason: "it holds no certificate, or one that can't be read")
                }
            } catch {
                if !now.isFaulty { change = .unusable(reason: "\(error)") }
                now.isFaulty = true
            }
            state = now
        }
        guard let change else { return }
        for listener in listeners.withLock({ $0 }) { listener(change) }
    }
}
