import CLibpq
import Glibc
import Heimdallr
import Reactor
import SharedStore

extension PostgresLink {
    /// Opens a connection to a server that writes, unless there is one. Tries each server in order, from the preferred
    /// one, and races its addresses. If no server writes, the connection is to one that reads (`isReadOnly`).
    ///
    /// libpq's `target_session_attrs` is not used: behind a pooler it may know the state of another server, and it offers
    /// no second choice.
    func open(by deadline: Instant) throws(PostgresFault) {
        guard !isOpen else { return }
        var fault: PostgresFault?
        var reader:
            (
                connection: OpaquePointer, server: String, process: Int64?, start: Int64?, clock: ServerReading?
            )?
        defer { if let reader = unsafe reader { unsafe libpq.call.PQfinish(reader.connection) } }
        /// Keeps the first fault with advice: a refusal says more than an unreachable server.
        func note(_ new: PostgresFault) { if fault == nil || fault?.advice == nil && new.advice != nil { fault = new } }

        servers: for offset in target.hosts.indices {
            let index = (preferred + offset) % target.hosts.count
            let host = target.hosts[index]
            var addresses: [SocketAddress?]
            do throws(PostgresFault) { addresses = try self.addresses(of: host) } catch {
                note(error)
                continue
            }
            while !addresses.isEmpty {
                let left = Instant.now.duration(to: deadline)
                guard left > .zero else { break servers }
                guard abandoned.hasRoom(for: host.description) else {
                    note(AbandonedConnections.fault)
                    break
                }
                // A server that does not answer leaves time for the others.
                let share = max(left / (target.hosts.count - offset), .milliseconds(500))
                do throws(PostgresFault) {
                    try open(host, &addresses, by: .now + min(target.connectTimeout, share, left))
                    if !isReadOnly {
                        preferred = index
                        return
                    }
                    note(PostgresFault(kind: .refused("25006"), text: "\(host.name) is read-only"))
                    if unsafe reader == nil, let found = unsafe connection {
                        unsafe reader = (found, server, process, serverStart, clock)
                        unsafe connection = nil
                    }
                    close()
                } catch {
                    note(error)
                    // libpq does the same. Each refused password may count towards the account's lock.
                    if error.isCredentialRefusal, error.usedPassword { break servers }
                }
            }
        }
        guard let found = unsafe reader else { throw fault ?? .lost("there was no time left to try a server") }
        unsafe reader = nil
        unsafe connection = unsafe found.connection
        server = unsafe found.server
        process = unsafe found.process
        serverStart = unsafe found.start
        clock = unsafe found.clock
        isReadOnly = true
    }

    /// - Returns: the addresses in the order of the attempts; `nil` for one that the connection string has.
    private func addresses(of host: ConnectionTarget.Host) throws(PostgresFault) -> [SocketAddress?] {
        if host.isUnixSocket || host.address != nil { return [nil] }
        var reason = "no address"
        // The second look-up also finds addresses of a family that this machine lacks, so that libpq reports the lack.
        for flags in [AI_ADDRCONFIG, 0] {
            do throws(ResolutionError) {
                let found = try SocketAddress.lookUp(
                    host.name, service: host.port, flags: flags | AI_NUMERICSERV, most: 8)
                return NameResolver.shared.silent.order(found)
            } catch { reason = error.reason }
        }
        throw PostgresFault(
            kind: .found(.noAddress), text: shown("the name \(host.name) can't be looked up: \(reason)"))
    }

    private func begin(
        _ host: ConnectionTarget.Host, _ address: SocketAddress?
    ) throws(PostgresFault) -> OpaquePointer {
        var text = address?.host
        if case .ipv6(_, _, let scope, _) = address?.kind, scope > 0 { text? += "%\(scope)" }
        unsafe connection = unsafe libpq.call.PQconnectStart(target.string(for: host, address: text, libpq))
        guard let begun = unsafe connection else { throw .lost("libpq is out of memory") }
        _ = unsafe libpq.call.PQsetNoticeReceiver(begun, { _, _ in }, nil)
        // Messages then have the SQLSTATE. Their other words are in the server's language.
        _ = unsafe libpq.call.PQsetErrorVerbosity(begun, PQERRORS_VERBOSE)
        guard unsafe libpq.call.PQstatus(begun) != CONNECTION_BAD else { throw connectFault(closing: true) }
        unsafe connection = nil
        return unsafe begun
    }

    /// Begins connections to the addresses in turn, until the network has made one (RFC 8305).
    /// - Parameter addresses: keeps those without a failure, for the case that the connection turns out to be of no use.
    /// - Returns: the event that libpq waits for.
    private func race(
        _ host: ConnectionTarget.Host, _ addresses: inout [SocketAddress?], by deadline: Instant
    ) throws(PostgresFault) -> PostgresPollingStatusType {
        let all = addresses
        addresses = []
        var left = all.indices.map { $0 }
        var times = AttemptTimes(
            count: all.count, now: .current(), deadline: .current() + Instant.now.duration(to: deadline))
        var begun: [(index: Int, connection: OpaquePointer)] = unsafe []
        defer { unsafe begun.forEach { unsafe libpq.call.PQfinish($0.connection) } }
        var fault = PostgresFault.lost("the server does not answer")
        while true {
            while let index = times.next(.current()) {
                do throws(PostgresFault) { unsafe begun.append((index, try unsafe begin(host, all[index]))) } catch {
                    fault = error
                    left.removeAll { $0 == index }
                    times.failed(.current())
                }
            }
            guard unsafe !begun.isEmpty || !times.isLast else { throw fault }
            guard Instant.now < deadline else { throw .lost("the server does not answer") }
            var entries = unsafe begun.map {
                unsafe pollfd(fd: libpq.call.PQsocket($0.connection), events: Int16(POLLOUT), revents: 0)
            }
            let wait = Int32(times.wake.since(.current()).wholeMilliseconds)
            let count = unsafe poll(&entries, nfds_t(entries.count), wait)
            guard count >= 0 || errno == EINTR else { throw .lost("poll failed") }
            for unsafe(entry, each) in unsafe zip(entries, begun) where entry.revents != 0 {
                unsafe begun.removeAll { unsafe $0.index == each.index }
                left.removeAll { unsafe $0 == each.index }
                unsafe connection = unsafe each.connection
                let wanted = unsafe libpq.call.PQconnectPoll(each.connection)
                guard wanted == PGRES_POLLING_FAILED else {
                    let overtaken = unsafe begun.filter { unsafe $0.index < each.index }.map { unsafe $0.index }
                    NameResolver.shared.silent.note(overtaken.compactMap { all[$0] })
                    addresses = left.map { all[$0] }
                    return wanted
                }
                fault = connectFault(closing: true)
                times.failed(.current())
            }
        }
    }

    /// Connects to one of the addresses, and asks whether the server writes.
    private func open(
        _ host: ConnectionTarget.Host, _ addresses: inout [SocketAddress?], by deadline: Instant
    ) throws(PostgresFault) {
        server = host.description
        do throws(PostgresFault) {
            var wanted = try race(host, &addresses, by: deadline)
            while wanted != PGRES_POLLING_OK {
                try wait(Int16(wanted == PGRES_POLLING_READING ? POLLIN : POLLOUT), by: deadline)
                wanted = unsafe libpq.call.PQconnectPoll(connection)
                if wanted == PGRES_POLLING_FAILED { throw connectFault() }
            }
            guard unsafe libpq.call.PQsetnonblocking(connection, 1) == 0 else { throw connectFault() }
        } catch {
            if error.kind == .lost, Instant.now >= deadline { giveUp() } else { close() }
            throw error
        }
        let asked = Instant.now
        let state: PostgresRows
        do throws(PostgresFault) { state = try run(Statements.state, by: deadline) } catch {
            close()
            throw error
        }
        process = state.integer(0, 0)
        isReadOnly = state.flag(0, 1)
        serverStart = state.integer(0, 3)
        clockError = asked.duration(to: .now)
        clock = state.integer(0, 2).map { ServerReading(server: $0, asked: asked, heard: .now) }
    }

    private func connectFault(closing: Bool = false) -> PostgresFault {
        defer { if closing { close() } }
        guard let connection = unsafe connection else { return .lost("there is no connection") }
        var fault = PostgresFault(connecting: message())
        fault.text = shown(fault.text)
        if case .refused = fault.kind {
        } else if unsafe libpq.call.PQconnectionNeedsPassword(connection) == 1 {
            fault.kind = .found(.noPassword)
        }
        fault.usedPassword = unsafe libpq.call.PQconnectionUsedPassword(connection) == 1
        return fault
    }
}
