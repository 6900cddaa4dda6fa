internal import Cryptography
import Dispatch
import Synchronization
internal import WireText

/// State of one client of the file store in this process.
final class FileStoreClient: Sendable {
    let name: String
    let recordName: String
    let lockName: String
    /// One piece of work at a time; a pool of threads that may block is behind it.
    private let queue: DispatchQueue
    private let machine: FileStoreMachine
    private let state = Mutex(State())

    private struct State {
        weak var lease: FileStoreLease?
        /// Lock of an unsaved record. It keeps other processes from the refresh token that the record replaces.
        var owed: FileLock?
        /// When which record was first to be saved.
        var stamp: (revision: UInt64, stamp: TimeStamp)?
    }

    /// - Throws: `TokenStoreError` when no file can be named after it.
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

    /// A file name has 255 bytes at most, and the longest suffix, `.token.new`, has 10.
    private static let longest = 240

    /// Unique for each client, and of letters, digits, `-`, `_` and `%` only: no name leads out of the directory or hides.
    /// `nil`: the name is empty or too long.
    static func file(for client: String) -> String? {
        let name = PercentEncoding.fileName.encode(client)
        return name.isEmpty || name.utf8.count > longest ? nil : name
    }

    /// Lock of the lease, or of a record that is owed.
    var lock: FileLock? { state.withLock { $0.lease?.lock ?? $0.owed } }

    var owed: FileLock? { state.withLock { $0.owed } }

    /// - Parameter lock: `nil`: nothing is owed any more.
    func owes(under lock: FileLock?) { state.withLock { $0.owed = lock } }

    func began(_ lease: FileStoreLease) { state.withLock { $0.lease = lease } }

    func stamp(for record: TokenRecord) -> TimeStamp {
        let now = machine.stamp()
        return state.withLock { state in
            if let known = state.stamp, known.revision == record.revision { return known.stamp }
            state.stamp = (record.revision, now)
            return now
        }
    }

    /// Runs blocking work on another thread, at most for `limit`. The work itself goes on, and later work waits for it.
    /// - Throws: `TokenStoreError`
    func perform<Value: Sendable>(
        within limit: Duration, _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await FirstOutcome.wait { [clock = machine.clock] in
            // Two times: a process that was stopped finds the first one over, and gives the disk the second.
            do { for _ in 0..<2 { try await clock.sleep(clock.now() + limit / 2) } } catch { return .failure(error) }
            return .failure(TokenStoreError("the disk of the token store does not answer: it was given \(limit)"))
        } begin: { outcome in
            let carryOut = machine.carryOut ?? { [queue] work in queue.async(execute: work) }
            carryOut {
                // Nobody waits for it any more, and it has not begun.
                guard !outcome.hasEnded else { return }
                outcome.end(
                    Result { try work() }.mapError { ($0 as? CryptographyError).map(TokenStoreError.init) ?? $0 })
            }
        }
    }
}

extension TokenStoreError {
    init(_ error: CryptographyError) {
        self.init("the token store: \(error)", kind: error.isLasting ? .misconfigured : .fault)
    }
}

/// The lock on one client's record. Ends with `release()`, or with its last reference.
final class FileStoreLease: TokenStoreLease {
    private let held: Mutex<FileLock?>

    init(_ client: FileStoreClient, _ lock: FileLock) {
        held = Mutex(lock)
        client.began(self)
    }

    var lock: FileLock? { held.withLock { $0 } }

    /// A write that is still under way, after its caller has lost patience, keeps the lock until its end.
    func release() async { held.withLock { $0 = nil } }
}
