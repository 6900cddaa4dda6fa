import Proxy
import Reactor
import WireText

/// One line of the audit stream: a JSON object (RFC 8259). Made on the loop that serves the request, byte by byte.
enum AuditLine {
    static func bytes(_ record: AuditRecord) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(256)
        begin(&line, record.time, record.result.rawValue)
        number("status", record.status, &line)
        text("reason", record.reason, &line)
        text("upstream", record.upstream, &line)
        if let rule = record.rule { text("rule", "upstreams[\(rule)]", &line) }
        text("client", record.client, &line)
        text("inject", record.injection, &line)
        text("user", record.user, &line)
        if let uid = record.uid { number("uid", Int(uid), &line) }
        text("listener", record.listener?.description, &line)
        text("peer", record.address?.description, &line)
        line += "}\n".utf8
        return line
    }

    /// A line that reports the number of dropped lines.
    static func bytes(dropped count: Int, _ time: WallTime) -> [UInt8] {
        var line: [UInt8] = []
        begin(&line, time, "dropped")
        number("count", count, &line)
        line += "}\n".utf8
        return line
    }

    private static func begin(_ line: inout [UInt8], _ time: WallTime, _ result: String) {
        line += "{\"time\":\"".utf8
        RFC3339.append(time.seconds, milliseconds: time.nanoseconds / 1_000_000, to: &line)
        line += "\",\"audit\":\"".utf8
        line += result.utf8
        line += "\"".utf8
    }

    private static func text(_ name: String, _ value: String?, _ line: inout [UInt8]) {
        guard let value else { return }
        line += ",\"".utf8
        line += name.utf8
        line += "\":\"".utf8
        Escaping.append(value, to: &line, style: .json)
        line += "\"".utf8
    }

    private static func number(_ name: String, _ value: Int, _ line: inout [UInt8]) {
        line += ",\"".utf8
        line += name.utf8
        line += "\":".utf8
        line += String(value).utf8
    }
}
