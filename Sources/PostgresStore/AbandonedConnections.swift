import CLibpq
import Glibc
import Reactor
import Synchronization

/// Connections whose statement or start was given up, while the server may still work on it. A server's process does not
/// notice that its client has gone before its next answer, so a closed connection would leave the process behind,
/// uncounted. An open one shows its end. For one thread.
@safe struct AbandonedConnections {
    typealias Instant = ContinuousClock.Instant

    @safe private struct Entry {
        let connection: OpaquePointer
        let server: String
        var until: Instant
        var isCancelled = false
    }

    /// Limit for one server, which bounds its processes for this process: these, the connection in use, and one more while
    /// it looks for a server that writes.
    static let most = 3
    /// Time after which the server is asked to cancel.
    var patience = Duration.seconds(60)
    private static let timeToCancel = Duration.seconds(15)

    static let fault = PostgresFault.lost(
        "the server has not ended \(most) statements that were given up: no further connection is made before it does")

    private let libpq: Libpq.Table
    private var entries: [Entry] = []
    /// Whether a thread asks a server to cancel. The call has no time limit, so there is one thread at a time.
    private static let isCancelling = Atomic(false)

    init(_ libpq: Libpq.Table) { self.libpq = libpq }

    var count: Int { entries.count }
    /// Sockets for poll(2). They become readable when the server has ended the work that was given up.
    var descriptors: [Int32] { entries.map { unsafe libpq.call.PQsocket($0.connection) }.filter { $0 >= 0 } }

    func hasRoom(for server: String) -> Bool { entries.count { $0.server == server } < Self.most }

    mutating func add(_ connection: OpaquePointer, to server: String) {
        unsafe entries.append(Entry(connection: connection, server: server, until: .now + patience))
    }

    /// Closes the connections on which the server has sent anything, or that it has ended. Waits for nothing. poll(2).
    mutating func look(now: Instant = .now) {
        for index in entries.indices.reversed() {
            let connection = unsafe entries[index].connection
            var query = unsafe pollfd(fd: libpq.call.PQsocket(connection), events: Int16(POLLIN), revents: 0)
            let isQuiet = query.fd >= 0 && (unsafe poll(&query, 1, 0)) == 0
            if isQuiet, now < entries[index].until { continue }
            if isQuiet, !entries[index].isCancelled {
                entries[index].isCancelled = true
                entries[index].until = now + Self.timeToCancel
                unsafe cancel(connection)
                continue
            }
            unsafe libpq.call.PQfinish(connection)
            entries.remove(at: index)
        }
    }

    /// PQcancel blocks, so it runs on another thread.
    private func cancel(_ connection: OpaquePointer) {
        guard !Self.isCancelling.exchange(true, ordering: .relaxed) else { return }
        guard let pointer = unsafe libpq.call.PQgetCancel(connection) else {
            return Self.isCancelling.store(false, ordering: .relaxed)
        }
        let request = unsafe Request(libpq: libpq, pointer: pointer)
        do throws(SystemError) { try startThread("store cancel") { request.send() } } catch { request.end() }
    }

    @safe private struct Request: @unchecked Sendable {
        let libpq: Libpq.Table
        let pointer: OpaquePointer

        func send() {
            var text = [CChar](repeating: 0, count: 256)
            _ = unsafe libpq.call.PQcancel(pointer, &text, 256)
            end()
        }

        func end() {
            unsafe libpq.call.PQfreeCancel(pointer)
            AbandonedConnections.isCancelling.store(false, ordering: .relaxed)
        }
    }

    mutating func closeAll() {
        for entry in entries { unsafe libpq.call.PQfinish(entry.connection) }
        entries = []
    }
}
