import CLibpq
import Glibc
import Heimdallr
import Reactor
import SharedStore

extension PostgresLink {
    /// Opens a connection to a server that writes, unless there is one. Tries each address of each server in order, from
    /// the preferred one. If no server writes, the connection is to one that reads (`isReadOnly`).
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
            let addresses: [String?]
            do throws(PostgresFault) { addresses = try self.addresses(of: host) } catch {
                note(error)
                continue
            }
            for address in addresses {
                let left = Instant.now.duration(to: deadline)
                guard left > .zero else { break servers }
                guard abandoned.hasRoom(for: host.description) else {
                    note(AbandonedConnections.fault)
                    break
                }
                // A server that does not answer leaves time for the others.
                let share = max(left / (target.hosts.count - offset), .milliseconds(500))
                do throws(PostgresFault) {
                    try open(host, address, by: .now + min(target.connectTimeout, share, left))
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

    private func addresses(of host: ConnectionTarget.Host) throws(PostgresFault) -> [String?] {
        if host.isUnixSocket || host.address != nil { return [nil] }
        var reason = "no address"
        // The second look-up also finds addresses of a family that this machine lacks, so that libpq reports the lack.
        for flags in [AI_ADDRCONFIG, 0] {
            do throws(ResolutionError) {
                let found = try SocketAddress.lookUp(host.name, flags: flags, most: 8)
                return found.map { address in
                    if case .ipv6(_, _, let scope, _) = address.kind, scope > 0 {
                        "\(address.host)%\(scope)"
                    } else {
                        address.host
                    }
                }
            } catch { reason = error.reason }
        }
        throw PostgresFault(
            kind: .found(.noAddress), text: shown("the name \(host.name) can't be looked up: \(reason)"))
    }

    /// Connects to one address, and asks whether the server writes.
    private func open(
        _ host: ConnectionTarget.Host, _ address: String?, by deadline: Instant
    ) throws(PostgresFault) {
        server = host.description
        unsafe connection = unsafe libpq.call.PQconnectStart(target.string(for: host, address: address, libpq))
        guard let connection = unsafe connection else { throw .lost("libpq is out of memory") }
        _ = unsafe libpq.call.PQsetNoticeReceiver(connection, { _, _ in }, nil)
        // Messages then have the SQLSTATE. Their other words are in the server's language.
        _ = unsafe libpq.call.PQsetErrorVerbosity(connection, PQERRORS_VERBOSE)
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
            let hasReachedServer = unsafe libpq.call.PQstatus(connection) != CONNECTION_STARTED
            if error.kind == .lost, hasReachedServer, Instant.now >= deadline { giveUp() } else { close() }
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

    private func connectFault() -> PostgresFault {
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
