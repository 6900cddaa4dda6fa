import Logging
import Proxy

/// One line for each request: what was asked for, what came of it, how long it took. Never a query, a field or a body.
struct AccessLog: Sendable {
    let writer: LogWriter

    var sink: @Sendable (AccessRecord) -> Void {
        { [writer] record in writer.write(Self.line(record, writer.format)) }
    }

    static func line(_ record: AccessRecord, _ format: LogLine.Format) -> [UInt8] {
        var fields: Logger.Metadata = [
            "method": "\(String(decoding: record.method, as: UTF8.self))",
            "host": "\(String(decoding: record.host, as: UTF8.self))",
            "path": "\(String(decoding: record.path, as: UTF8.self))",
            "status": .stringConvertible(record.status),
            "bytes_sent": .stringConvertible(record.bytesSent),
            "bytes_received": .stringConvertible(record.bytesReceived),
            "duration_ms": .stringConvertible(Double(record.duration.wholeMicroseconds) / 1000),
        ]
        if let upstream = record.upstream { fields["upstream"] = "\(upstream)" }
        if let client = record.client { fields["client"] = "\(client)" }
        return LogLine.bytes(format, time: .now, level: .info, message: "request", fields: fields)
    }
}

extension Duration {
    fileprivate var wholeMicroseconds: Int64 {
        components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
    }
}
