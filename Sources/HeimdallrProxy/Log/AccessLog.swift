import HTTPMessage
import Proxy
import Reactor

/// The access log: one line for each request, with its result and duration. It never shows a query, a header field
/// or a body. The event loop that serves the request builds the line byte by byte, without a dictionary or a sort.
enum AccessLog {
    static func line(_ record: RequestRecord, _ format: LogLine.Format) -> [UInt8] {
        var line = LogLine(format, record.startedAt + record.duration, level: "info", message: "request", capacity: 384)
        line.text("method", record.method)
        line.text("host", record.host)
        line.text("path", record.path)
        if record.version == .http2 { line.text("http", record.version.number) }
        line.number("status", UInt64(clamping: record.status))
        if let status = record.grpcStatus { line.number("grpc_status", UInt64(status)) }
        line.milliseconds("duration_ms", record.duration)
        line.milliseconds("token_wait_ms", record.tokenWait)
        line.milliseconds("connect_ms", record.connect)
        line.milliseconds("first_byte_ms", record.firstByte)
        if let isReused = record.isReused { line.text("connection", isReused ? "reused" : "new") }
        if record.wasReplayed { line.flag("replayed", true) }
        line.text("not_replayed", record.notReplayed)
        line.number("bytes_sent", record.bytesSent)
        line.number("bytes_received", record.bytesReceived)
        line.text("reason", record.reason)
        line.text("error", record.errorClass)
        line.text("cause", record.cause)
        line.text("upstream", record.upstream)
        line.text("client", record.client)
        line.text("user", record.user)
        line.text("certificate", record.certificate)
        if let peer = record.peer {
            line.number("uid", UInt64(peer.user))
            line.number("gid", UInt64(peer.group))
            line.number("pid", UInt64(clamping: peer.process))
        }
        line.text("peer", record.address?.description)
        if !record.requestID.isEmpty { line.text("request_id", record.requestID) }
        if let trace = record.traceID { line.text("trace_id", trace.text) }
        return line.end()
    }
}
