import Proxy
import Reactor

/// One line for each request: what was asked for, what came of it, how long it took. Never a query, a field or a body.
///
/// Made on the loop that serves the request, so it is put together byte by byte, without a dictionary or a sort.
struct AccessLog: Sendable {
    let writer: LogWriter

    var sink: @Sendable (AccessRecord) -> Void {
        { [writer] record in writer.write(Self.line(record, writer.format, time: .now)) }
    }

    static func line(_ record: AccessRecord, _ format: LogLine.Format, time: WallTime) -> [UInt8] {
        let duration = record.duration.components
        let microseconds = duration.seconds * 1_000_000 + duration.attoseconds / 1_000_000_000_000
        return line(
            format, time: time, method: record.method, host: record.host, path: record.path, status: record.status,
            microseconds: microseconds, sent: record.bytesSent, received: record.bytesReceived,
            upstream: record.upstream, client: record.client, user: record.user, peer: record.peer,
            reason: record.reason, cause: record.cause, address: record.address, requestID: record.requestID)
    }

    static func line(
        _ format: LogLine.Format, time: WallTime, method: [UInt8], host: [UInt8], path: [UInt8], status: Int,
        microseconds: Int64, sent: UInt64, received: UInt64, upstream: String?, client: String?,
        user: String? = nil, peer: PeerCredentials? = nil, reason: String? = nil, cause: String? = nil,
        address: SocketAddress? = nil,
        requestID: [UInt8] = []
    ) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(256)
        LogLine.begin(&line, format, time: time, level: "info", message: "request")
        name("method", &line, format)
        text(method, &line, format)
        name("host", &line, format)
        text(host, &line, format)
        name("path", &line, format)
        text(path, &line, format)
        name("status", &line, format)
        decimal(UInt64(clamping: status), &line)
        name("duration_ms", &line, format)
        milliseconds(UInt64(clamping: microseconds), &line)
        name("bytes_sent", &line, format)
        decimal(sent, &line)
        name("bytes_received", &line, format)
        decimal(received, &line)
        for (key, value) in [
            ("reason", reason), ("cause", cause), ("upstream", upstream), ("client", client), ("user", user),
        ] {
            guard let value else { continue }
            name(key, &line, format)
            text(Array(value.utf8), &line, format)
        }
        if let peer {
            name("uid", &line, format)
            decimal(UInt64(peer.user), &line)
            name("gid", &line, format)
            decimal(UInt64(peer.group), &line)
            name("pid", &line, format)
            decimal(UInt64(clamping: peer.process), &line)
        }
        if let address {
            name("peer", &line, format)
            text(Array(address.description.utf8), &line, format)
        }
        if !requestID.isEmpty {
            name("request_id", &line, format)
            text(requestID, &line, format)
        }
        LogLine.end(&line, format)
        return line
    }

    private static func name(_ name: String, _ line: inout [UInt8], _ format: LogLine.Format) {
        switch format {
        case .text:
            line.append(UInt8(ascii: " "))
            line += name.utf8
            line.append(UInt8(ascii: "="))
        case .json:
            line += ",\"".utf8
            line += name.utf8
            line += "\":".utf8
        }
    }

    private static func text(_ value: [UInt8], _ line: inout [UInt8], _ format: LogLine.Format) {
        if format == .text, Escaping.isPlainWord(value) {
            line += value
            return
        }
        line.append(UInt8(ascii: "\""))
        Escaping.append(value, to: &line, style: format == .text ? .quotedText : .json)
        line.append(UInt8(ascii: "\""))
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

    /// With three digits behind the point.
    private static func milliseconds(_ microseconds: UInt64, _ line: inout [UInt8]) {
        decimal(microseconds / 1000, &line)
        line.append(UInt8(ascii: "."))
        for divisor: UInt64 in [100, 10, 1] {
            line.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: microseconds / divisor % 10))
        }
    }
}
