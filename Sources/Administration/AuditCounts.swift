/// Counts of audit lines.
public struct AuditCounts: Sendable, Equatable {
    /// Lines written, or waiting to be written.
    public var written: UInt64
    /// Lines lost because the reader was too slow or the disk full.
    public var dropped: UInt64

    public init(written: UInt64 = 0, dropped: UInt64 = 0) {
        self.written = written
        self.dropped = dropped
    }

    public static func + (left: AuditCounts, right: AuditCounts) -> AuditCounts {
        AuditCounts(written: left.written + right.written, dropped: left.dropped + right.dropped)
    }
}

extension MetricsPage {
    func writeAudit(_ output: inout PrometheusText) {
        guard let audit else { return }
        output.begin(
            "heimdallr_audit_lines_total", .counter,
            "Lines of the audit stream, by whether they were written or dropped because they could not be.")
        output.sample(["result": "written"], audit.written)
        output.sample(["result": "dropped"], audit.dropped)
    }
}
