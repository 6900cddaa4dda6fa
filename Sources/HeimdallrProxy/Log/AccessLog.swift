import Proxy
import Reactor

/// One line for each request: the request, its result, its duration. Never a query, a field or a body.
///
/// Made on the loop that serves the request, so it is built byte by byte, without a dictionary or a sort.
struct AccessLog: Sendable {
    let writer: LogWriter

    var sink: @Sendable (AccessRecord) -> Void {
        { [writer] record in writer.write(Self.line(record, writer.format)) }
    }

    static func line(_ record: AccessRecord, _ format: LogLine.Format) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(384)
        LogLine.begin(&line, format, time: record.startedAt + record.duration, level: "info", message: "request")
        text("method", record.method, &line, format)
        text("host", record.host, &line, format)
        text("path", record.path, &line, format)
        number("status", UInt64(clamping: record.status), &line, format)
        milliseconds("duration_ms", record.duration, &line, format)
        milliseconds("token_wait_ms", record.tokenWait, &line, format)
        milliseconds("connect_ms", record.connect, &line, format)
        milliseconds("first_byte_ms", record.firstByte, &line, format)
        if let isReused = record.isReused { text("connection", isReused ? "reused" : "new", &line, format) }
        if record.wasReplayed {
            name("replayed", &line, format)
            line += "true".utf8
        }
        number("bytes_sent", record.bytesSent, &line, format)
        number("bytes_received", record.bytesReceived, &line, format)
        text("reason", record.reason, &line, format)
        text("error", record.errorClass, &line, format)
        text("cause", record.cause, &line, format)
        text("upstream", record.upstream, &line, format)
        text("client", record.client, &line, format)
        text("user", record.user, &line, format)
        if let peer = record.peer {
            number("uid", UInt64(peer.user), &line, format)
            number("gid", UInt64(peer.group), &line, format)
            number("pid", UInt64(clamping: peer.process), &line, format)
        }
        if let address = record.address { text("peer", address.description, &line, format) }
        if !record.requestID.isEmpty { text("request_id", record.requestID, &line, format) }
        if let trace = record.traceID { text("trace_id", trace.text, &line, format) }
        LogLine.end(&line, format)
        return line
    }

    private static func text(_ key: String, _ value: [UInt8], _ line: inout [UInt8], _ format: LogLine.Format) {
        name(key, &line, format)
        if format != .json, Escaping.isPlainWord(value) {
            line += value
            return
        }
        line.append(UInt8(ascii: "\""))
        Escaping.append(value, to: &line, style: format == .json ? .json : .quotedText)
        line.append(UInt8(ascii: "\""))
    }

    private static func text(_ key: String, _ value: String?, _ line: inout [UInt8], _ format: LogLine.Format) {
        guard let value else { return }
        name(key, &line, format)
        if format != .json, Escaping.isPlainWord(value.utf8) {
            line += value.utf8
            return
        }
        line.append(UInt8(ascii: "\""))
        Escaping.append(value, to: &line, style: format == .json ? .json : .quotedText)
        line.append(UInt8(ascii: "\""))
    }

    private static func number(_ key: String, _ value: UInt64, _ line: inout [UInt8], _ format: LogLine.Format) {
        name(key, &line, format)
        decimal(value, &line)
    }

    private static func milliseconds(
        _ key: String, _ duration: Duration?, _ line: inout [UInt8], _ format: LogLine.Format
    ) {
        guard let duration else { return }
        name(key, &line, format)
        milliseconds(UInt64(clamping: duration.wholeNanoseconds / 1000), &line)
    }

    private static func name(_ name: String, _ line: inout [UInt8], _ format: LogLine.Format) {
        switch format {
        case .text:
            line.append(UInt8(ascii: " "))
            line += name.utf8
            line.append(UInt8(ascii: "="))
        case .colored:
            line.append(UInt8(ascii: " "))
            line += LogLine.Color.faint.utf8
            line += name.utf8
            line.append(UInt8(ascii: "="))
            line += LogLine.Color.off.utf8
        case .json:
            line += ",\"".utf8
            line += name.utf8
            line += "\":".utf8
        }
    }

    private static func decimal(_ value: UInt64, _ line: inout [UInt8]) {
        let start = line.count
        var rest = value
        repeat {
            line.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0
        line[start...].reverse()
    }

    /// Three decimal places.
    private static func milliseconds(_ microseconds: UInt64, _ line: inout [UInt8]) {
        decimal(microseconds / 1000, &line)
        line.append(UInt8(ascii: "."))
        for divisor: UInt64 in [100, 10, 1] {
            line.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: microseconds / divisor % 10))
        }
    }
}
