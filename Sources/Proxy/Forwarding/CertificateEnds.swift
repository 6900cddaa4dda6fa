import Cryptography
import HTTPServer
import Reactor

/// Ends connections when the certificates of their programs end, by the wall clock. Loop's thread only.
final class CertificateEnds {
    /// Longest time between two checks, because the wall clock may be set.
    private static let interval = Duration.seconds(10)

    private struct Entry {
        let connection: ServerConnection
        let end: Int64
    }

    private var entries: [ObjectIdentifier: Entry] = [:]
    private var next = Int64.max
    private var timer: LoopTimer?

    init(loop: EventLoop) {
        timer = LoopTimer(on: loop) { [unowned self] in check() }
    }

    /// - Parameters:
    ///   - grant: must be removed when the connection has closed.
    ///   - end: last second in which the certificate is good, since 1970.
    func insert(_ connection: ServerConnection, of grant: ConnectionGrant, at end: Int64) {
        entries[ObjectIdentifier(grant)] = Entry(connection: connection, end: end)
        if end < next || entries.count == 1 { schedule(at: end) }
    }

    func remove(_ grant: ConnectionGrant) { entries[ObjectIdentifier(grant)] = nil }

    private func check() {
        let now = WallClock.now()
        for (key, entry) in entries where entry.end < now {
            entries[key] = nil
            entry.connection.expire()
        }
        if let end = entries.values.lazy.map(\.end).min() { schedule(at: end) } else { next = .max }
    }

    private func schedule(at end: Int64) {
        next = end
        let (left, isFar) = end.subtractingReportingOverflow(WallClock.now())
        timer?.schedule(after: isFar ? Self.interval : min(.seconds(max(0, left) + 1), Self.interval))
    }
}
