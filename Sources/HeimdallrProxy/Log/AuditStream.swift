import Administration
import Configuration
import Logging
import Proxy
import Reactor

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

    func write(_ record: AuditRecord) { writer.write(AuditLine.bytes(record)) }

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
