import Synchronization

/// What a pool counts of its connections since it was given this, and when the certificates end that it was shown.
/// Written by one loop only, so that counting takes no lock; read from any thread.
public final class ConnectionCounts: Sendable, Equatable {
    private let openedCount = Atomic<UInt64>(0)
    private let reusedCount = Atomic<UInt64>(0)
    private let end = Atomic<Int64>(0)

    public init() {}

    /// Connections that were made.
    public var opened: UInt64 { openedCount.load(ordering: .relaxed) }
    /// Exchanges on a connection that had served another before.
    public var reused: UInt64 { reusedCount.load(ordering: .relaxed) }
    /// When the first certificate ends of the chain that the other side of the newest TLS connection was checked by, in
    /// seconds since 1970; `nil`: none was made. One that resumed a session has shown none, and changes nothing.
    public var certificateEnd: Int64? {
        let end = end.load(ordering: .relaxed)
        return end == 0 ? nil : end
    }

    // One writer: a load and a store, where `add` would lock the memory's bus.
    func countOpened() { openedCount.store(openedCount.load(ordering: .relaxed) &+ 1, ordering: .relaxed) }
    func countReused() { reusedCount.store(reusedCount.load(ordering: .relaxed) &+ 1, ordering: .relaxed) }

    func noteCertificate(end seconds: Int64) {
        if seconds > 0 { end.store(seconds, ordering: .relaxed) }
    }

    public static func == (left: ConnectionCounts, right: ConnectionCounts) -> Bool { left === right }
}
