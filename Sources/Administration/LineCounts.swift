/// Counts of lines of the log or of the audit stream.
public struct LineCounts: Sendable, Equatable {
    /// Lines that the output took as a whole. Lines that wait to be written are not counted yet.
    public var written: UInt64
    /// Lines lost because the reader was too slow, or because the output could not be written.
    public var dropped: UInt64

    public init(written: UInt64 = 0, dropped: UInt64 = 0) {
        self.written = written
        self.dropped = dropped
    }

    public static func + (left: LineCounts, right: LineCounts) -> LineCounts {
        LineCounts(written: left.written + right.written, dropped: left.dropped + right.dropped)
    }
}
