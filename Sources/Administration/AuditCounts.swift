/// Counts of audit lines.
public struct AuditCounts: Sendable, Equatable {
    /// Lines written, or waiting to be written.
    public var written: UInt64
    /// Lines lost because the reader was too slow or the disk was full.
    public var dropped: UInt64

    public init(written: UInt64 = 0, dropped: UInt64 = 0) {
        self.written = written
        self.dropped = dropped
    }

    public static func + (left: AuditCounts, right: AuditCounts) -> AuditCounts {
        AuditCounts(written: left.written + right.written, dropped: left.dropped + right.dropped)
    }
}
