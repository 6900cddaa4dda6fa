import CLibpq
import Glibc
import Heimdallr
import Reactor

/// One connection to the database, for use on one thread. Calls return by their deadline, except that looking up a name
/// takes as long as the system's resolver does. After `PostgresFault.lost`, the connection is closed.
@safe final class PostgresLink {
    typealias Instant = ContinuousClock.Instant

    /// Parameter of a statement: bytes, or text that the statement casts.
    enum Value {
        case text(String)
        case integer(Int64)
        case bytes([UInt8])
        case null
    }

    private let libpq: Libpq.Table
    private let target: ConnectionTarget
    private var connection: OpaquePointer?
    /// Index of the last server reached. The next attempt begins there.
    private var preferred = 0

    /// Called when the server or the network ended the connection.
    private let broke: @Sendable () -> Void

    init(_ target: ConnectionTarget, _ libpq: Libpq.Table, broke: @escaping @Sendable () -> Void = {}) {
        self.broke = broke
        self.target = target
        self.libpq = libpq
    }

    deinit { close() }

    var isOpen: Bool { unsafe connection != nil }

    /// Socket for poll(2); -1 without a connection.
    var descriptor: Int32 { unsafe connection.map { unsafe libpq.call.PQsocket($0) } ?? -1 }

    /// Process ID of the server, as announced at the start of the connection.
    var announcedProcess: Int32 { unsafe connection.map { unsafe libpq.call.PQbackendPID($0) } ?? 0 }

    func close() {
        if let connection = unsafe connection { unsafe libpq.call.PQfinish(connection) }
        unsafe connection = nil
    }

    // MARK: Connecting

    /// Opens a connection, unless there is one. Tries each address of each server in order, from the preferred one.
    func open(by deadline: Instant) throws(PostgresFault) {
        guard !isOpen else { return }
        var last = PostgresFault.lost("no server was tried")
        var hasAdvice = false
        for offset in target.hosts.indices {
            let index = (preferred + offset) % target.hosts.count
            let host = target.hosts[index]
            for address in host.isUnixSocket || host.address != nil ? [nil] : addresses(of: host).map(Optional.some) {
                guard Instant.now < deadline else { break }
                do throws(PostgresFault) {
                    try open(host, address, by: min(deadline, .now + target.connectTimeout))
                    preferred = index
                    return
                } catch {
                    // Keeps the first fault with advice: a refusal says more than an unreachable server.
                    if !hasAdvice { last = error }
                    hasAdvice = hasAdvice || error.advice != nil
                }
            }
        }
        if last.text == "no server was tried" {
            last = .lost("the name of the server can't be resolved, or there was no time left")
        }
        throw last
    }

    private func addresses(of host: ConnectionTarget.Host) -> [String] {
        // The second look-up also finds addresses of a family that this machine lacks, so that libpq reports the lack.
        for flags in [AI_ADDRCONFIG, 0] {
            guard let found = try? SocketAddress.lookUp(host.name, flags: flags, most: 8) else { continue }
            return found.map { address in
                if case .ipv6(_, _, let scope, _) = address.kind, scope > 0 {
                    "\(address.host)%\(scope)"
                } else {
                    address.host
                }
            }
        }
        return []
    }

    private func open(
        _ host: ConnectionTarget.Host, _ address: String?, by deadline: Instant
    ) throws(PostgresFault) {
        unsafe connection = unsafe libpq.call.PQconnectStart(target.string(for: host, address: address, libpq))
        guard let connection = unsafe connection else { throw .lost("libpq is out of memory") }
        _ = unsafe libpq.call.PQsetNoticeReceiver(connection, { _, _ in }, nil)
        do throws(PostgresFault) {
            guard unsafe libpq.call.PQstatus(connection) != CONNECTION_BAD else { throw connectFault() }
            var wanted = PGRES_POLLING_WRITING
            while wanted != PGRES_POLLING_OK {
                try wait(Int16(wanted == PGRES_POLLING_READING ? POLLIN : POLLOUT), by: deadline)
                wanted = unsafe libpq.call.PQconnectPoll(connection)
                if wanted == PGRES_POLLING_FAILED { throw connectFault() }
            }
            guard unsafe libpq.call.PQsetnonblocking(connection, 1) == 0 else { throw connectFault() }
        } catch {
            close()
            throw error
        }
    }

    /// Returns the fault of a connection attempt. libpq gives no code, so its English message decides the kind. A
    /// message in another language counts as an unreachable server.
    private func connectFault() -> PostgresFault {
        let text = message()
        let known = [
            ("password authentication failed", "28P01"), ("no password supplied", "28P01"),
            ("authentication failed", "28000"), ("no pg_hba.conf entry", "28000"),
            ("is not permitted to log in", "28000"),
        ]
        var code = known.first { text.contains($0.0) }?.1
        if code == nil, text.contains("does not exist") {
            code = text.contains("database \"") ? "3D000" : text.contains("role \"") ? "28000" : nil
        }
        return code.map { PostgresFault(kind: .refused($0), text: text) } ?? .lost(text)
    }

    private func message() -> String {
        guard let connection = unsafe connection, let text = unsafe libpq.call.PQerrorMessage(connection) else {
            return "no connection"
        }
        return shown(unsafe String(cString: text))
    }

    /// Returns the text on one line, printable and without the password.
    private func shown(_ text: String) -> String {
        let words = text.split { $0 == "\n" || $0 == "\t" || $0 == "\r\n" }.joined(separator: "; ")
        let sanitized = ServerText.sanitize(words, hiding: target.password.map { $0.isEmpty ? [] : [$0] } ?? [])
        return sanitized.isEmpty ? "the connection is gone" : sanitized
    }

    // MARK: Statements

    /// Runs an unnamed statement with parameters `$1` and so on, which works through any connection pooler.
    func run(_ statement: String, _ values: [Value] = [], by deadline: Instant) throws(PostgresFault) -> PostgresRows {
        try unsafe perform(by: deadline) { connection in
            var bytes: [UInt8] = []
            var ranges: [(offset: Int, count: Int)?] = []
            var formats: [Int32] = []
            for value in values {
                let offset = bytes.count
                formats.append(0)
                switch value {
                case .null:
                    ranges.append(nil)
                    continue
                case .text(let text): bytes += Array(text.utf8.filter { $0 != 0 })
                case .integer(let number): bytes += Array("\(number)".utf8)
                case .bytes(let raw):
                    bytes += raw
                    formats[formats.count - 1] = 1
                }
                ranges.append((offset, bytes.count - offset))
                bytes.append(0)
            }
            return unsafe bytes.withUnsafeBytes { raw in
                let base = unsafe raw.bindMemory(to: CChar.self).baseAddress
                let pointers = unsafe ranges.map { unsafe $0.flatMap { unsafe base?.advanced(by: $0.offset) } }
                let lengths = ranges.map { Int32(clamping: $0?.count ?? 0) }
                return unsafe libpq.call.PQsendQueryParams(
                    connection, statement, Int32(values.count), nil, pointers, lengths, formats, 1)
            }
        }
    }

    /// Runs several statements. After a fault, the connection is closed, because a transaction may be open.
    func run(script: String, by deadline: Instant) throws(PostgresFault) {
        do throws(PostgresFault) {
            _ = try unsafe perform(by: deadline) { connection in unsafe libpq.call.PQsendQuery(connection, script) }
        } catch {
            close()
            throw error
        }
    }

    private func perform(
        by deadline: Instant, _ send: (OpaquePointer) -> Int32
    ) throws(PostgresFault) -> PostgresRows {
        guard let connection = unsafe connection else { throw .lost("there is no connection") }
        do throws(PostgresFault) {
            guard unsafe send(connection) == 1 else { throw .lost(message()) }
            while true {
                let rest = unsafe libpq.call.PQflush(connection)
                guard rest >= 0 else { throw .lost(message()) }
                if rest == 0 { break }
                try wait(Int16(POLLIN | POLLOUT), by: deadline)
                guard unsafe libpq.call.PQconsumeInput(connection) == 1 else { throw .lost(message()) }
            }
            var rows = PostgresRows()
            var refusal: PostgresFault?
            while true {
                while unsafe libpq.call.PQisBusy(connection) == 1 {
                    try wait(Int16(POLLIN), by: deadline)
                    guard unsafe libpq.call.PQconsumeInput(connection) == 1 else { throw .lost(message()) }
                }
                guard let result = unsafe libpq.call.PQgetResult(connection) else { break }
                defer { unsafe libpq.call.PQclear(result) }
                switch unsafe libpq.call.PQresultStatus(result) {
                case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: rows = try unsafe PostgresRows(result, libpq)
                case PGRES_FATAL_ERROR, PGRES_NONFATAL_ERROR, PGRES_BAD_RESPONSE:
                    refusal = unsafe refusal ?? fault(of: result)
                // No statement of ours has such a result, and such a server might never stop sending.
                default: throw .lost("the server sent an unexpected kind of result")
                }
                guard Instant.now < deadline else { throw .lost("the server's answer does not end") }
            }
            guard unsafe libpq.call.PQstatus(connection) == CONNECTION_OK else {
                throw .lost(refusal?.text ?? message())
            }
            // Each statement is a transaction of its own. If one is open now, nothing of the statement is committed.
            guard unsafe libpq.call.PQtransactionStatus(connection) == PQTRANS_IDLE else {
                close()
                throw refusal ?? .lost("a transaction was left open, so nothing is committed: check the pooler")
            }
            if let refusal { throw refusal }
            return rows
        } catch {
            if error.kind == .lost {
                close()
                broke()
            }
            throw error
        }
    }

    private func fault(of result: OpaquePointer) -> PostgresFault {
        func field(_ code: Int32) -> String? {
            unsafe libpq.call.PQresultErrorField(result, code).map { unsafe String(cString: $0) }
        }
        guard let code = field(heimdallr_libpq_sqlstate), code.utf8.count == 5,
            code.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) })
        else { return .lost(message()) }
        return PostgresFault(
            kind: .refused(code), text: shown(field(heimdallr_libpq_message) ?? "refused") + " [\(code)]")
    }

    // MARK: Waiting

    /// Waits until the socket is ready. poll(2).
    private func wait(_ events: Int16, by deadline: Instant) throws(PostgresFault) {
        while true {
            let left = Instant.now.duration(to: deadline)
            guard left > .zero else { throw .lost("the server does not answer") }
            var entry = pollfd(fd: descriptor, events: events, revents: 0)
            let count = unsafe poll(&entry, 1, Int32(left.wholeMilliseconds))
            if count > 0 { return }
            guard count == 0 || errno == EINTR else { throw .lost("poll failed") }
        }
    }

    // MARK: Notifications

    /// Returns the texts of the notifications received so far, without waiting.
    func notifications() throws(PostgresFault) -> [String] {
        guard let connection = unsafe connection else { throw .lost("there is no connection") }
        guard unsafe libpq.call.PQconsumeInput(connection) == 1,
            unsafe libpq.call.PQstatus(connection) == CONNECTION_OK
        else {
            let text = message()
            close()
            broke()
            throw .lost(text)
        }
        var texts: [String] = []
        while let note = unsafe libpq.call.PQnotifies(connection) {
            if let extra = unsafe note.pointee.extra { texts.append(unsafe String(cString: extra)) }
            unsafe libpq.call.PQfreemem(note)
        }
        return texts
    }
}
