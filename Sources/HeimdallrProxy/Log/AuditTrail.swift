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
    /// Counts of former streams: a counter never goes back.
    private let former = Mutex<AuditCounts?>(nil)
    private let logger: Logger

    init(logger: Logger) { self.logger = logger }

    /// The stream for a configuration: the current one, or a new one that is not in use yet. Blocks.
    func prepare(_ settings: AuditSettings?) throws(AuditFault) -> AuditStream? {
        guard let settings else { return nil }
        if let current = stream.withLock({ $0 }), current.settings == settings { return current }
        return try AuditStream(settings, logger: logger)
    }

    /// Replaces the current stream, which has no users any more. Blocks for a moment.
    func install(_ next: AuditStream?) {
        let before = stream.withLock { stream in
            defer { stream = next }
            return stream
        }
        guard let before, before !== next else { return }
        before.close()
        former.withLock { $0 = ($0 ?? AuditCounts()) + before.counts }
    }

    /// Closes a prepared stream that will not be used.
    func discard(_ prepared: AuditStream?) {
        guard let prepared, stream.withLock({ $0 !== prepared }) else { return }
        prepared.close()
    }

    /// Opens the file again, which may have been moved away. Blocks.
    func reopen() {
        do throws(AuditFault) { try stream.withLock({ $0 })?.reopen() } catch {
            logger.error(
                "the audit file can't be opened again; the one that was open stays", metadata: ["reason": "\(error)"])
        }
    }

    /// `nil` without any stream so far.
    var counts: AuditCounts? {
        let (now, former) = (stream.withLock { $0 }?.counts, former.withLock { $0 })
        guard now != nil || former != nil else { return nil }
        return (now ?? AuditCounts()) + (former ?? AuditCounts())
    }

    /// Writes the remaining lines. Blocks.
    func close() { stream.withLock { $0 }?.close() }
}

/// Output of the audit stream. Callers never wait: another thread writes the lines. Lines that can't be written are
/// dropped and counted, and the next written line reports their number. Any thread.
final class AuditStream: Sendable {
    let settings: AuditSettings
    private let writer: LogWriter
    private let file: AppendedFile?

    /// - Throws: `AuditFault` when the file can't be opened.
    init(_ settings: AuditSettings, logger: Logger) throws(AuditFault) {
        self.settings = settings
        let output: any LineOutput
        switch settings {
        case .standardError:
            file = nil
            output = OutputDescriptor.standardError
        case .file(let path):
            do throws(AppendedFileFault) {
                let opened = try AppendedFile(path: path) { Self.note($0, path, logger) }
                file = opened
                output = opened
            } catch {
                throw AuditFault(path: path, error: error)
            }
        }
        writer = LogWriter(format: .json, output: output) { AuditLine.bytes(dropped: $0, .now) }
    }

    /// Finds what `init` would throw, and neither makes nor writes a file.
    static func check(_ settings: AuditSettings?) throws(AuditFault) {
        guard case .file(let path) = settings else { return }
        do throws(AppendedFileFault) { try AppendedFile.check(path) } catch {
            throw AuditFault(path: path, error: error)
        }
    }

    func write(_ record: RequestRecord) { writer.write(AuditLine.bytes(record)) }

    var counts: AuditCounts { AuditCounts(written: writer.counts.taken, dropped: writer.counts.lost) }

    /// Opens the file again, which may have been moved away. Blocks.
    /// - Throws: `AuditFault`; then the open file stays in use.
    func reopen() throws(AuditFault) {
        guard let file else { return }
        // Earlier lines belong to the former file.
        writer.flush()
        do throws(AppendedFileFault) { try file.reopen() } catch { throw AuditFault(path: file.path, error: error) }
    }

    /// Writes the remaining lines, within a short time limit. Blocks.
    func close() { writer.close() }

    private static func note(_ failure: SystemCallError?, _ path: String, _ logger: Logger) {
        guard let failure else {
            return logger.notice("the audit file can be written again", metadata: ["file": "\(path)"])
        }
        logger.error(
            "the audit file can't be written: lines are dropped and counted, and requests go on",
            metadata: ["file": "\(path)", "reason": "\(failure.sentence)", "what_to_do": "see to the disk"])
    }
}

/// The audit stream's file can't be opened.
struct AuditFault: Error, CustomStringConvertible {
    let description: String

    init(path: String, error: AppendedFileFault) {
        switch error {
        case .call(let error):
            description =
                "audit.file: \(path) can't be opened: \(error.sentence). Name a file that the proxy's user may write to, in "
                + "a folder that is there; no symbolic link, pipe or device"
        case .notOurs(let fault): description = "audit.file: \(path) is not written to: \(fault)"
        }
    }
}

/// One line of the audit stream: a JSON object (RFC 8259). Made on the loop that serves the request.
enum AuditLine {
    static func bytes(_ record: RequestRecord) -> [UInt8] {
        line(record.startedAt + record.duration, record.audit?.rawValue ?? "") { line in
            LogLine.number("status", UInt64(clamping: record.status), &line, .json)
            if let status = record.grpcStatus { LogLine.number("grpc_status", UInt64(status), &line, .json) }
            LogLine.text("reason", record.reason, &line, .json)
            LogLine.text("upstream", record.upstream, &line, .json)
            LogLine.text("rule", record.rule.map { "upstreams[\($0)]" }, &line, .json)
            LogLine.text("client", record.client, &line, .json)
            LogLine.text("inject", record.injection, &line, .json)
            LogLine.text("user", record.user, &line, .json)
            if let peer = record.peer { LogLine.number("uid", UInt64(peer.user), &line, .json) }
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
