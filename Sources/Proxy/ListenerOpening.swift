import Configuration
import Glibc
import Reactor
import WireText

/// Input of all functions that open listeners.
struct ListenInput {
    let loops: Int
    /// Ports at which the configuration listens for IPv4. There, `[::]` takes IPv6 alone.
    var v4Ports: Set<UInt16> = []
    /// Listening sockets from the service manager (sd_listen_fds(3)).
    let passed: [PassedSocket]
}

extension ProxyServer {
    /// Default mode of a Unix socket: only the proxy's user may connect.
    static let defaultMode: UInt16 = 0o600

    /// Opens a listener for each address of an entry: takes over a passed socket that fits, or binds the address. Of a
    /// name's addresses, leaves out those that this machine does not have.
    /// - Parameters:
    ///   - name: name by which a passed socket is found if no address matches.
    ///   - passed: sockets not claimed yet.
    /// - Returns: one array for each resolved address, with one socket per loop.
    /// - Throws: `ListenError`, after closing all sockets. If the machine has none of a name's addresses, the error
    ///   names the first.
    static func open(
        _ address: ListenAddress, name: String, _ passed: inout PassedSockets, _ input: ListenInput
    ) throws(ListenError) -> [[ListeningSocket]] {
        var opened: [[ListeningSocket]] = []
        do throws(ListenError) {
            try forEachOwn(try resolve(address)) { resolved throws(ListenError) in
                if let socket = passed.claim(resolved, name: name) {
                    opened.append(
                        try collect(input.loops, resolved) { _ throws(SystemError) in try socket.listeningSocket() })
                } else if case .unix(let path, let mode) = address {
                    opened.append(try open(path: path, mode: mode ?? defaultMode, input))
                } else {
                    opened.append(try open(resolved, input))
                }
            }
        } catch {
            for socket in opened.joined() { socket.close() }
            throw error
        }
        return opened
    }

    /// Calls `body` for each address of a name, and skips the addresses that this machine does not have.
    /// - Throws: the first error of an address that the machine has; if it has none, the first error.
    private static func forEachOwn(
        _ addresses: [SocketAddress], _ body: (SocketAddress) throws(ListenError) -> Void
    ) throws(ListenError) {
        var (first, isServed) = (ListenError?.none, false)
        for address in addresses {
            do throws(ListenError) {
                try body(address)
                isServed = true
            } catch {
                guard error.isForeign else { throw error }
                first = first ?? error
            }
        }
        if let first, !isServed { throw first }
    }

    /// Returns reasons why this configuration can't listen. A used address is no reason: a running proxy may have it.
    public static func check(_ configuration: Configuration, passed: [PassedSocket]) -> [ListenError] {
        var passed = PassedSockets(passed)
        return configuration.listenAddresses.compactMap { address, upstream in
            do throws(ListenError) {
                let name = configuration.passedName(upstream: upstream)
                try forEachOwn(try resolve(address)) { resolved throws(ListenError) in
                    guard passed.claim(resolved, name: name) == nil else { return }
                    do throws(SystemError) { try ListeningSocket.probe(resolved) } catch {
                        throw failure(error, resolved)
                    }
                }
                return nil
            } catch {
                var error = error
                error.listener = address
                return error
            }
        }
    }

    /// Binds one socket per loop, all to the port of the first. For port 0, the kernel chose that port.
    private static func open(_ address: SocketAddress, _ input: ListenInput) throws(ListenError) -> [ListeningSocket] {
        try collect(input.loops, address) { earlier throws(SystemError) in
            try ListeningSocket.open(
                earlier.first?.address ?? address, sharesPort: input.loops > 1,
                isV6Only: address.family == AF_INET6 && input.v4Ports.contains(address.port))
        }
    }

    /// Binds the path once. All loops accept from this socket.
    private static func open(
        path: String, mode: UInt16, _ input: ListenInput
    ) throws(ListenError) -> [ListeningSocket] {
        try collect(input.loops, SocketAddress(.unix(path: path))) { earlier throws(SystemError) in
            guard let first = earlier.first else { return try ListeningSocket.open(path: path, mode: mode) }
            return try first.duplicate()
        }
    }

    private static func collect(
        _ count: Int, _ address: SocketAddress,
        _ open: ([ListeningSocket]) throws(SystemError) -> ListeningSocket
    ) throws(ListenError) -> [ListeningSocket] {
        var sockets: [ListeningSocket] = []
        do throws(SystemError) {
            for _ in 0..<count { sockets.append(try open(sockets)) }
        } catch {
            for socket in sockets { socket.close() }
            throw failure(error, address)
        }
        return sockets
    }

    private static func failure(_ error: SystemError, _ address: SocketAddress) -> ListenError {
        var failure = ListenError(description: "can't listen on \(address): \(reason(error, address))")
        failure.isForeign = error.isForeignAddress
        failure.isInUse = error.code == EADDRINUSE
        if case .unix = address.kind {} else { failure.isForbidden = error.code == EACCES }
        return failure
    }

    private static func reason(_ error: SystemError, _ address: SocketAddress) -> String {
        switch (error.code, address.kind) {
        case (EADDRINUSE, _): "the address is in use: end the process that listens there, or write another address"
        case (EADDRNOTAVAIL, _), (EAFNOSUPPORT, _):
            "this machine has no such address: write an address of this machine, such as 127.0.0.1"
        case (EEXIST, .unix): "there is a file that is no socket; move it away or write another path"
        case (ENOENT, .unix): "there is no such folder; make it, and let the proxy's user write to it"
        case (EACCES, .unix): "the proxy's user may not write to this folder"
        default: MachineShortage(errno: error.code).map { "\(error): \($0.remedy)" } ?? error.description
        }
    }

    /// Returns the addresses to bind for a listener; for a host name, all its addresses.
    public static func resolve(_ address: ListenAddress) throws(ListenError) -> [SocketAddress] {
        let (host, port): (String, UInt16)
        switch address {
        case .unix(let path, _): return [SocketAddress(.unix(path: path))]
        case .tcp(let name, let number): (host, port) = (name, number)
        }
        if let numeric = SocketAddress(numericHost: host, port: port) { return [numeric] }
        do throws(ResolutionError) {
            return try SocketAddress.resolve(host: host, port: port)
        } catch {
            throw ListenError(description: "can't listen on \(host):\(port): \(error)")
        }
    }
}
