internal import Cryptography
import Dispatch
internal import FileSystem
import Synchronization
internal import WireText

/// This process's state of one client in the file store.
final class FileStoreClient: Sendable {
    let name: String
    let recordName: String
    let lockName: String
    /// Runs one piece of work at a time, on a pool of threads that may block.
    private let queue: DispatchQueue
    private let machine: FileStoreMachine
    private let state = Mutex(State())

    private struct State {
        weak var lease: FileStoreLease?
        /// Lock kept for an unsaved record, so that no other process uses the refresh token that the record replaces.
        var unsavedLock: FileLock?
        /// Revision of the last record, and the time of the first attempt to save it.
        var stamp: (revision: UInt64, stamp: TimeStamp)?
    }

    /// - Throws: `TokenStoreError` if the name is empty or too long for a file name.
    init(_ name: String, on machine: FileStoreMachine = .system) throws(TokenStoreError) {
        guard let file = Self.file(for: name) else {
            throw TokenStoreError("the token store needs client names of 1 to 80 characters", kind: .misconfigured)
        }
        self.name = name
        self.machine = machine
        recordName = file + ".token"
        lockName = file + ".lock"
        queue = DispatchQueue(label: "token store", target: .global())
    }

    /// Longest file name without its suffix. A file name has at most 255 bytes, and the suffix `.token.new` has 10.
    private static let longest = 240

    /// Returns a unique file name of letters, digits, `-`, `_` and `%` only, so that no name leads out of the directory
    /// or is hidden. `nil`: the client's name is empty or too long.
    static func file(for client: String) -> String? {
        let name = PercentEncoding.fileName.encode(client)
        return name.isEmpty || name.utf8.count > longest ? nil : name
    }

    /// Lock of the lease, or of the unsaved record.
    var lock: FileLock? { state.withLock { $0.lease?.lock ?? $0.unsavedLock } }

    var unsavedLock: FileLock? { state.withLock { $0.unsavedLock } }

    /// Keeps the lock of an unsaved record; `nil`: the record is saved.
    func keepForUnsaved(_ lock: FileLock?) { state.withLock { $0.unsavedLock = lock } }

    func began(_ lease: FileStoreLease) { state.withLock { $0.lease = lease } }

    func stamp(for record: TokenRecord) -> TimeStamp {
        let now = machine.stamp()
        return state.withLock { state in
            if let known = state.stamp, known.revision == record.revision { return known.stamp }
            state.stamp = (record.revision, now)
            return now
        }
    }

    /// Runs blocking work on another thread, and waits at most `limit`. Work that takes longer goes on, and
    /// delays later work of this client.
    /// - Throws: `TokenStoreError`
    func perform<Value: Sendable>(
        within limit: Duration, _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await FirstOutcome.wait { [clock = machine.clock] in
            // After a stop of this process, the first sleep may end at once. The second still gives the disk some time.
            do { for _ in 0..<2 { try await clock.sleep(clock.now() + limit / 2) } } catch { return .failure(error) }
            return .failure(TokenStoreError("the disk of the token store does not answer: waited for \(limit)"))
        } begin: { outcome in
            let carryOut = machine.carryOut ?? { [queue] work in queue.async(execute: work) }
            carryOut {
                // No caller waits for this work any more, so it does not begin.
                guard !outcome.hasEnded else { return }
                outcome.end(
                    Result { try work() }.mapError { error in
                        switch error {
                        case let fault as FileSystem.Fault: TokenStoreError(fault)
                        case is CryptographyError: TokenStoreError("the token store: \(error)", kind: .fault)
                        default: error
                        }
                    })
            }
        }
    }
}

extension TokenStoreError {
    init(_ error: FileSystem.Fault) {
        if case .system(_, _, let number) = error, let shortage = MachineShortage(errno: number),
            shortage != .permission
        {
            self.init("the token store: \(error)", advice: shortage.remedy, kind: .fault)
        } else {
            self.init("the token store: \(error)", kind: error.isLasting ? .misconfigured : .fault)
        }
    }
}

/// Lease on one client's record. Ends with `release()`, or when the last reference goes.
final class FileStoreLease: TokenStoreLease {
    private let held: Mutex<FileLock?>

    init(_ client: FileStoreClient, _ lock: FileLock) {
        held = Mutex(lock)
        client.began(self)
    }

    var lock: FileLock? { held.withLock { $0 } }

    /// Gives up the lock. A write under way, whose caller no longer waits, keeps the lock until it ends.
    func release() async { held.withLock { $0 = nil } }
}
