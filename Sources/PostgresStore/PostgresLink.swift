import CLibpq
import Glibc
import Heimdallr
import Reactor
import SharedStore

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

    let libpq: Libpq.Table
    /// Servers of the next attempt.
    var target: ConnectionTarget
    var connection: OpaquePointer?
    /// Index of the last server reached. The next attempt begins there.
    var preferred = 0
    /// Host and port of the connection.
    var server = ""
    /// Whether no server writes. The connection is for reading then.
    var isReadOnly = false
    /// Process of the server that ran the first statement.
    var process: Int64?
    /// Time at which the server was started, in microseconds by its clock.
    var serverStart: Int64?
    /// Clock of the server; `nil` before the first statement.
    var clock: ServerReading?
    /// Time of the round trip that read the clock.
    var clockError = Duration.zero
    /// Connections that were given up, and that the server has not ended yet.
    var abandoned: AbandonedConnections

    /// Called when the server or the network ended the connection.
    private let broke: @Sendable () -> Void

    init(_ target: ConnectionTarget, _ libpq: Libpq.Table, broke: @escaping @Sendable () -> Void = {}) {
        self.broke = broke
        self.target = target
        self.libpq = libpq
        abandoned = AbandonedConnections(libpq)
    }

    deinit {
        close()
        abandoned.closeAll()
    }

    var isOpen: Bool { unsafe connection != nil }

    /// Socket for poll(2); -1 without a connection.
    var descriptor: Int32 { unsafe connection.map { unsafe libpq.call.PQsocket($0) } ?? -1 }

    /// Process ID of the server, as announced at the start of the connection.
    var announcedProcess: Int32 { unsafe connection.map { unsafe libpq.call.PQbackendPID($0) } ?? 0 }

    func close() {
        if let connection = unsafe connection { unsafe libpq.call.PQfinish(connection) }
        unsafe connection = nil
        isReadOnly = false
        clock = nil
    }

    /// Whether the server has answered everything, as far as was read from the connection.
    private var hasAnswer: Bool {
        guard let connection = unsafe connection, unsafe libpq.call.PQstatus(connection) == CONNECTION_OK else {
            return false
        }
        return unsafe libpq.call.PQisBusy(connection) == 0
    }

    /// Closes the connection, or leaves it aside while the server may still work for it.
    func giveUp() {
        // An answer of the last moment may be read already. The socket would then never tell that the server has ended.
        if let given = unsafe connection, !hasAnswer { unsafe abandoned.add(given, to: server) } else { return close() }
        unsafe connection = nil
        close()
    }

    func message() -> String {
        guard let connection = unsafe connection, let text = unsafe libpq.call.PQerrorMessage(connection) else {
            return "no connection"
        }
        return unsafe String(cString: text)
    }

    /// Returns the text on one line, printable and without the password.
    func shown(_ text: String) -> String {
        let words = text.split { $0 == "\n" || $0 == "\t" || $0 == "\r\n" }.joined(separator: "; ")
        let sanitized = ServerText.sanitize(words, hiding: target.secrets)
        return sanitized.isEmpty ? "the connection is gone" : sanitized
    }

    // MARK: Statements

    /// Runs an unnamed statement with parameters `$1` and so on, which works through any connection pooler. The server
    /// refuses it after the deadline, and ends it before the deadline: nothing goes on after its caller gave it up.
    func run(_ statement: String, _ values: [Value] = [], by deadline: Instant) throws(PostgresFault) -> PostgresRows {
        let asked = Instant.now
        guard let clock else { return try unsafe perform(by: deadline) { unsafe send($0, statement, values) }.last() }
        // The rest is for the way of the answer.
        let end = clock.server(at: deadline - asked.duration(to: deadline) * 0.1)
        let results = try unsafe perform(by: deadline) { connection in
            guard unsafe libpq.call.PQenterPipelineMode(connection) == 1,
                unsafe send(connection, Statements.timeLimit, [.integer(end)]) == 1,
                unsafe send(connection, statement, values) == 1
            else { return 0 }
            return unsafe libpq.call.PQpipelineSync(connection)
        }
        take(results.first, asked: asked)
        return results.last()
    }

    /// Reads the server's clock from the first column, if this reading is about as exact as the last one.
    private func take(_ rows: PostgresRows?, asked: Instant) {
        let heard = Instant.now
        guard clock != nil, let server = rows?.integer(0, 0) else { return }
        let error = asked.duration(to: heard)
        guard error <= max(.milliseconds(100), clockError * 2) else { return }
        self.clock = ServerReading(server: server, asked: asked, heard: heard)
        clockError = error
    }

    private func send(_ connection: OpaquePointer, _ statement: String, _ values: [Value]) -> Int32 {
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

    /// Runs several statements. After a fault, the connection is closed, because a transaction may be open.
    func run(script: String, by deadline: Instant) throws(PostgresFault) {
        do throws(PostgresFault) {
            _ = try unsafe perform(by: deadline) { connection in unsafe libpq.call.PQsendQuery(connection, script) }
        } catch {
            close()
            throw error
        }
    }

    /// - Returns: the results in order.
    private func perform(
        by deadline: Instant, _ send: (OpaquePointer) -> Int32
    ) throws(PostgresFault) -> [PostgresRows] {
        guard let connection = unsafe connection else { throw .lost("there is no connection") }
        do throws(PostgresFault) {
            guard unsafe send(connection) == 1 else { throw .lost(shown(message())) }
            while true {
                let rest = unsafe libpq.call.PQflush(connection)
                guard rest >= 0 else { throw .lost(shown(message())) }
                if rest == 0 { break }
                try wait(Int16(POLLIN | POLLOUT), by: deadline)
                guard unsafe libpq.call.PQconsumeInput(connection) == 1 else { throw .lost(shown(message())) }
            }
            let (results, refusal) = try unsafe receive(connection, by: deadline)
            guard unsafe libpq.call.PQstatus(connection) == CONNECTION_OK else {
                throw .lost(refusal?.text ?? shown(message()))
            }
            // Each statement is a transaction of its own. If one is open now, nothing of the statement is committed.
            guard unsafe libpq.call.PQtransactionStatus(connection) == PQTRANS_IDLE else {
                close()
                throw refusal ?? .lost("a transaction was left open, so nothing is committed: check the pooler")
            }
            if let refusal { throw refusal }
            return results
        } catch {
            if error.kind == .lost {
                // The server may still work on the statement.
                if Instant.now >= deadline { giveUp() } else { close() }
                broke()
            } else if error.isReadOnly, !isReadOnly {
                // Another server may write by now, behind a pooler, too.
                close()
                broke()
            }
            throw error
        }
    }

    /// Reads the results of all statements sent, and the first refusal.
    private func receive(
        _ connection: OpaquePointer, by deadline: Instant
    ) throws(PostgresFault) -> (results: [PostgresRows], refusal: PostgresFault?) {
        var results: [PostgresRows] = []
        var refusal: PostgresFault?
        // In a pipeline, the results of each statement end with `nil`, and those of all with a result of their own.
        let isPipeline = unsafe libpq.call.PQpipelineStatus(connection) == PQ_PIPELINE_ON
        var (isSynced, isAtEnd) = (!isPipeline, false)
        while true {
            while unsafe libpq.call.PQisBusy(connection) == 1 {
                try wait(Int16(POLLIN), by: deadline)
                guard unsafe libpq.call.PQconsumeInput(connection) == 1 else { throw .lost(shown(message())) }
            }
            guard let result = unsafe libpq.call.PQgetResult(connection) else {
                if isSynced { break }
                guard !isAtEnd else { throw .lost(refusal?.text ?? shown(message())) }
                isAtEnd = true
                continue
            }
            defer { unsafe libpq.call.PQclear(result) }
            isAtEnd = false
            switch unsafe libpq.call.PQresultStatus(result) {
            case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY:
                results.append(try unsafe PostgresRows(result, libpq))
            case PGRES_FATAL_ERROR, PGRES_NONFATAL_ERROR, PGRES_BAD_RESPONSE:
                refusal = unsafe refusal ?? fault(of: result)
                if isPipeline, results.isEmpty, refusal?.kind == .refused(Statements.isLate) {
                    refusal = .lost("the server got the statement too late")
                }
            case PGRES_PIPELINE_ABORTED: break
            case PGRES_PIPELINE_SYNC: isSynced = true
            // No statement of ours has such a result, and such a server might never stop sending.
            default: throw .lost("the server sent an unexpected kind of result")
            }
            if isPipeline, isSynced { break }
            guard Instant.now < deadline else { throw .lost("the server's answer does not end") }
        }
        if isPipeline, unsafe libpq.call.PQexitPipelineMode(connection) != 1 { throw .lost(shown(message())) }
        return (results, refusal)
    }

    private func fault(of result: OpaquePointer) -> PostgresFault {
        func field(_ code: Int32) -> String? {
            unsafe libpq.call.PQresultErrorField(result, code).map { unsafe String(cString: $0) }
        }
        guard let code = field(heimdallr_libpq_sqlstate), code.utf8.count == 5,
            code.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) })
        else { return .lost(shown(message())) }
        return PostgresFault(
            kind: .refused(code), text: shown(field(heimdallr_libpq_message) ?? "refused") + " [\(code)]")
    }

    // MARK: Waiting

    /// Waits until the socket is ready. poll(2).
    func wait(_ events: Int16, by deadline: Instant) throws(PostgresFault) {
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
            let text = shown(message())
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

extension [PostgresRows] {
    fileprivate func last() -> PostgresRows { last ?? PostgresRows() }
}
