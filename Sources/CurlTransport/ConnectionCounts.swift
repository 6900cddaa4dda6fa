import Synchronization

/// A pool's counters of connections, and the end time of its servers' certificates. Only one loop writes them, so no
/// lock is needed. Any thread may read them.
public final class ConnectionCounts: Sendable, Equatable {
    private let openedCount = Atomic<UInt64>(0)
    private let reusedCount = Atomic<UInt64>(0)
    private let end = Atomic<Int64>(0)

    public init() {}

    public var opened: UInt64 { openedCount.load(ordering: .relaxed) }
    /// Number of exchanges on reused connections.
    public var reused: UInt64 { reusedCount.load(ordering: .relaxed) }
    /// Earliest end of a certificate in the newest verified chain, in seconds since 1970; `nil` before the first
    /// chain. A resumed TLS session has no chain, so it does not change this value.
    public var certificateEnd: Int64? {
        let end = end.load(ordering: .relaxed)
        return end == 0 ? nil : end
    }

    // With one writer, a load and a store suffice. They avoid the bus lock of `add`.
    func countOpened() { openedCount.store(openedCount.load(ordering: .relaxed) &+ 1, ordering: .relaxed) }
    public func countReused() { reusedCount.store(reusedCount.load(ordering: .relaxed) &+ 1, ordering: .relaxed) }

    func noteCertificate(end seconds: Int64) {
        if seconds > 0 { end.store(seconds, ordering: .relaxed) }
    }

    public static func == (left: ConnectionCounts, right: ConnectionCounts) -> Bool { left === right }
}
