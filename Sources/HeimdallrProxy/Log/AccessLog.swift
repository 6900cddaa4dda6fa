import Proxy
import Reactor

/// One line for each request: the request, its result, its duration. Never a query, a field or a body.
///
/// Made on the loop that serves the request, so it is built byte by byte, without a dictionary or a sort.
struct AccessLog: Sendable {
    let writer: LogWriter

    var sink: @Sendable (RequestRecord) -> Void {
        { [writer] record in writer.write(Self.line(record, writer.format)) }
    }

    static func line(_ record: RequestRecord, _ format: LogLine.Format) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(384)
        LogLine.begin(&line, format, time: record.startedAt + record.duration, level: "info", message: "request")
        LogLine.text("method", record.method, &line, format)
        LogLine.text("host", record.host, &line, format)
        LogLine.text("path", record.path, &line, format)
        LogLine.number("status", UInt64(clamping: record.status), &line, format)
        if let status = record.grpcStatus { LogLine.number("grpc_status", UInt64(status), &line, format) }
        LogLine.milliseconds("duration_ms", record.duration, &line, format)
        LogLine.milliseconds("token_wait_ms", record.tokenWait, &line, format)
        LogLine.milliseconds("connect_ms", record.connect, &line, format)
        LogLine.milliseconds("first_byte_ms", record.firstByte, &line, format)
        if let isReused = record.isReused { LogLine.text("connection", isReused ? "reused" : "new", &line, format) }
        if record.wasReplayed {
            LogLine.name("replayed", &line, format)
            line += "true".utf8
        }
        LogLine.number("bytes_sent", record.bytesSent, &line, format)
        LogLine.number("bytes_received", record.bytesReceived, &line, format)
        LogLine.text("reason", record.reason, &line, format)
        LogLine.text("error", record.errorClass, &line, format)
        LogLine.text("cause", record.cause, &line, format)
        LogLine.text("upstream", record.upstream, &line, format)
        LogLine.text("client", record.client, &line, format)
        LogLine.text("user", record.user, &line, format)
        if let peer = record.peer {
            LogLine.number("uid", UInt64(peer.user), &line, format)
            LogLine.number("gid", UInt64(peer.group), &line, format)
            LogLine.number("pid", UInt64(clamping: peer.process), &line, format)
        }
        if let address = record.address { LogLine.text("peer", address.description, &line, format) }
        if !record.requestID.isEmpty { LogLine.text("request_id", record.requestID, &line, format) }
        if let trace = record.traceID { LogLine.text("trace_id", trace.text, &line, format) }
        LogLine.end(&line, format)
        return line
    }
}
