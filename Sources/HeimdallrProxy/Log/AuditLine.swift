import Proxy
import Reactor
import WireText

/// One line of the audit stream: a JSON object (RFC 8259). Made on the loop that serves the request.
enum AuditLine {
    static func bytes(_ record: AuditRecord) -> [UInt8] {
        line(record.time, record.result.rawValue) { line in
            LogLine.number("status", UInt64(clamping: record.status), &line, .json)
            LogLine.text("reason", record.reason, &line, .json)
            LogLine.text("upstream", record.upstream, &line, .json)
            LogLine.text("rule", record.rule.map { "upstreams[\($0)]" }, &line, .json)
            LogLine.text("client", record.client, &line, .json)
            LogLine.text("inject", record.injection, &line, .json)
            LogLine.text("user", record.user, &line, .json)
            if let uid = record.uid { LogLine.number("uid", UInt64(uid), &line, .json) }
            LogLine.text("listener", record.listener?.description, &line, .json)
            LogLine.text("peer", record.address?.description, &line, .json)
        }
    }

    /// Reports the number of dropped lines.
    static func bytes(dropped count: Int, _ time: WallTime) -> [UInt8] {
        line(time, "dropped") { LogLine.number("count", UInt64(clamping: count), &$0, .json) }
    }

    private static func line(_ time: WallTime, _ result: String, _ fields: (inout [UInt8]) -> Void) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(256)
        line += "{\"time\":\"".utf8
        RFC3339.append(time.seconds, milliseconds: time.nanoseconds / 1_000_000, to: &line)
        line += "\"".utf8
        LogLine.text("audit", result, &line, .json)
        fields(&line)
        LogLine.end(&line, .json)
        return line
    }
}
