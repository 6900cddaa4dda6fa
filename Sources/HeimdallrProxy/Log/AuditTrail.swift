import Administration
import Configuration
import Logging
import Synchronization

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
