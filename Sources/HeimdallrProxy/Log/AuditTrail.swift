import Administration
import Configuration
import Logging
import Proxy
import Reactor
import Synchronization
import WireText

/// The audit stream of the configuration in use. Any thread.
final class AuditTrail: Sendable {
    private let stream = Mutex<AuditStream?>(nil)
    /// Sum of the counts of closed streams. It is added to the current counts, because a counter must never decrease.
    private let former = Mutex<LineCounts?>(nil)
    private let logger: Logger

    init(logger: Logger) { self.logger = logger }

    /// Returns the stream for `install`: the current one if its settings are equal, else a new one. Blocks.
    func prepare(_ settings: AuditSettings?) throws(AuditFault) -> AuditStream? {
        guard let settings else { return nil }
        if let current = stream.withLock({ $0 }), current.settings == settings { return current }
        return try AuditStream(settings, logger: logger)
    }

    /// Puts `next` into use and closes the former stream, which no request may use any more. Blocks for a moment.
    func install(_ next: AuditStream?) {
        let before = stream.withLock { stream in
            defer { stream = next }
            return stream
        }
        guard let before, before !== next else { return }
        before.close()
        former.withLock { $0 = ($0 ?? LineCounts()) + before.counts }
    }

    /// Writes a line of no request.
    func write(_ line: [UInt8]) { stream.withLock { $0 }?.write(line) }

    /// Closes a prepared stream that will not be installed, unless it is the current stream.
    func discard(_ prepared: AuditStream?) {
        guard let prepared, stream.withLock({ $0 !== prepared }) else { return }
        prepared.close()
    }

    /// Opens the file at its path again, because log rotation may have moved it. Logs a failure. Blocks.
    func reopen() {
        do throws(AuditFault) { try stream.withLock({ $0 })?.reopen() } catch {
            logger.error(
                "the audit file can't be opened again; the old file stays in use", metadata: ["reason": "\(error)"])
        }
    }

    /// Counts of all streams since the start; `nil` if there was no stream.
    var counts: LineCounts? {
        let (now, former) = (stream.withLock { $0 }?.counts, former.withLock { $0 })
        guard now != nil || former != nil else { return nil }
        return (now ?? LineCounts()) + (former ?? LineCounts())
    }

    /// Writes the remaining lines and closes the stream. Blocks.
    func close() { stream.withLock { $0 }?.close() }
}

/// Output of the audit stream. Callers never wait: another thread writes the lines. Lines that can't be written are
/// dropped and counted, and the next written line reports their number. Any thread.
final class AuditStream: Sendable {
    let settings: AuditSettings
    private let writer: LogWriter
    private let file: AppendedFile?

    init(_ settings: AuditSettings, logger: Logger) throws(AuditFault) {
        self.settings = settings
        let output: any LineOutput
        switch settings {
        case .standardError:
            file = nil
            output = LineDescriptor.standardError
        case .file(let path):
            let opened = try AppendedFile(path: path) { Self.note($0, path, logger) }
            file = opened
            output = opened
        }
        writer = LogWriter(format: .json, output: output) { dropped, _ in AuditLine.bytes(dropped: dropped, .now) }
    }

    func write(_ record: RequestRecord) { write(AuditLine.bytes(record)) }

    func write(_ line: [UInt8]) { writer.write(line) }

    var counts: LineCounts { writer.counts }

    /// Opens the file at its path again, because log rotation may have moved it. Blocks.
    /// - Throws: `AuditFault`. The old file then stays in use.
    func reopen() throws(AuditFault) {
        guard let file else { return }
        // Lines from before the reopening belong in the old file.
        writer.flush()
        try file.reopen()
    }

    /// Writes the remaining lines, within a short time limit. Later lines are dropped. Blocks.
    func close() { writer.close() }

    private static func note(_ failure: SystemCallError?, _ path: String, _ logger: Logger) {
        guard let failure else {
            return logger.notice("the audit file can be written again", metadata: ["file": "\(path)"])
        }
        logger.error(
            "the audit file can't be written: lines are dropped and counted, and requests go on",
            metadata: ["file": "\(path)", "reason": "\(failure.sentence)", "what_to_do": "check the disk"])
    }
}

/// One line of the audit stream: a JSON object (RFC 8259). A request's event loop builds the request's line.
enum AuditLine {
    static func bytes(_ record: RequestRecord) -> [UInt8] {
        var line = LogLine(audit: record.audit?.rawValue ?? "", record.startedAt + record.duration)
        line.number("status", UInt64(clamping: record.status))
        if let status = record.grpcStatus { line.number("grpc_status", UInt64(status)) }
        line.text("reason", record.reason)
        line.text("upstream", record.upstream)
        line.text("rule", record.rule.map { "upstreams[\($0)]" })
        line.text("client", record.client)
        line.text("inject", record.injection)
        line.text("user", record.user)
        line.text("certificate", record.certificate)
        if let peer = record.peer { line.number("uid", UInt64(peer.user)) }
        line.text("listener", record.listener?.description)
        line.text("peer", record.address?.description)
        return line.end()
    }

    /// Returns the line of a token that a program got.
    static func bytes(_ export: ExportReport, _ time: WallTime) -> [UInt8] {
        var line = LogLine(audit: "exported", time)
        line.text("client", export.client)
        line.text("format", export.format)
        if let user = export.user { line.number("uid", UInt64(user)) }
        line.text("until", export.end)
        line.text("file", export.file)
        return line.end()
    }

    /// Returns the line that reports the number of dropped lines.
    static func bytes(dropped count: Int, _ time: WallTime) -> [UInt8] {
        var line = LogLine(audit: "dropped", time)
        line.number("count", UInt64(clamping: count))
        return line.end()
    }
}
