// Every pointer here lives for the one call it is passed to.
import Glibc
import Synchronization

/// The child processes of this process. Any thread.
///
/// Some children are orphans: the first process of a container becomes the parent of each process whose parent has
/// ended. `reap` reaps all children, and keeps the endings of known programs for the `ChildProgram`s that wait for them.
enum Children {
    private enum Fate {
        case running
        case ended(ChildProgram.Ending)
    }

    /// Programs whose ending nobody has taken yet, by process number.
    private static let known = Mutex<[Int32: Fate]>([:])

    /// Starts a program by `spawn`, which returns its process number. `reap` can't run between the start and the entry.
    static func start(_ spawn: () throws(SystemCallError) -> Int32) throws(SystemCallError) -> Int32 {
        try known.withLock { known throws(SystemCallError) in
            let process = try spawn()
            known[process] = .running
            return process
        }
    }

    /// Returns how a program ended; `nil` while it runs. Only the first call after the end returns the ending.
    static func takeEnding(of process: Int32) -> ChildProgram.Ending? {
        known.withLock { known in
            switch known[process] {
            case nil: return nil
            case .ended(let ending):
                known[process] = nil
                return ending
            case .running:
                var status: Int32 = 0
                guard unsafe waitpid(process, &status, WNOHANG) == process else { return nil }
                known[process] = nil
                return ChildProgram.Ending(status: status)
            }
        }
    }

    /// Sends a signal to a program that has not been reaped. Another process may have the number of a reaped program.
    static func signal(_ process: Int32, _ number: Int32) {
        known.withLock { known in
            if case .running = known[process] { _ = kill(process, number) }
        }
    }

    /// Notes that no caller waits for the program any more, so its end needs no entry.
    static func abandon(_ process: Int32) { known.withLock { $0[process] = nil } }

    /// Reaps the children that have ended. waitpid(2).
    /// - Returns: `false` if there are no children left.
    @discardableResult
    static func reap() -> Bool {
        known.withLock { known in
            while true {
                var status: Int32 = 0
                let found = unsafe waitpid(-1, &status, WNOHANG)
                if found == 0 { return true }
                if found > 0 {
                    if known[found] != nil { known[found] = .ended(.init(status: status)) }
                } else if errno != EINTR {
                    return false
                }
            }
        }
    }
}
