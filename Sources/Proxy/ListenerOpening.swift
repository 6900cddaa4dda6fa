import Configuration
import Glibc
import Reactor

extension ProxyServer {
    /// Who may use a Unix socket whose mode is not configured: the user that the proxy runs as.
    static let defaultMode: UInt16 = 0o600

    /// Binds an address once for each loop.
    ///
    /// - Returns: for each address that the name stands for, a socket per loop.
    /// - Throws: `ListenError`; then nothing is left bound.
    static func open(_ address: ListenAddress, loops: Int) throws(ListenError) -> [[ListeningSocket]] {
        var opened: [[ListeningSocket]] = []
        do throws(ListenError) {
            switch address {
            case .unix(let path, let mode): opened.append(try open(path: path, mode: mode ?? defaultMode, loops))
            case .tcp(let host, let port):
                for resolved in try resolve(host: host, port: port) { opened.append(try open(resolved, loops)) }
            }
        } catch {
            for socket in opened.joined() { socket.close() }
            throw error
        }
        return opened
    }

    /// The other loops share the port that the kernel chose for the first.
    private static func open(_ address: SocketAddress, _ loops: Int) throws(ListenError) -> [ListeningSocket] {
        try collect(loops, address) { earlier throws(SystemError) in
            try ListeningSocket.open(earlier.first?.address ?? address, sharesPort: loops > 1)
        }
    }

    /// A path is bound once: the other loops accept from the same socket.
    private static func open(path: String, mode: UInt16, _ loops: Int) throws(ListenError) -> [ListeningSocket] {
        try collect(loops, SocketAddress(.unix(path: path))) { earlier throws(SystemError) in
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
            var failure = ListenError(description: "can't listen on \(address): \(reason(error, address))")
            if error.code == EADDRINUSE {
                if case .unix(let path) = address.kind {
                    failure.pathInUse = path
                } else {
                    failure.portInUse = address.port
                }
            }
            throw failure
        }
        return sockets
    }

    private static func reason(_ error: SystemError, _ address: SocketAddress) -> String {
        guard case .unix = address.kind else { return error.description }
        switch error.code {
        case EEXIST: return "there is a file that is no socket; move it away or write another path"
        case EADDRINUSE: return "somebody listens there already"
        case ENOENT: return "there is no such folder; make it, with room for the proxy's user to write"
        case EACCES: return "the proxy's user may not write there"
        default: return error.description
        }
    }

    private static func resolve(host: String, port: UInt16) throws(ListenError) -> [SocketAddress] {
        if let numeric = SocketAddress(numericHost: host, port: port) { return [numeric] }
        do throws(ResolutionError) {
            return try SocketAddress.resolve(host: host, port: port)
        } catch {
            throw ListenError(description: "can't listen on \(host): \(error)")
        }
    }
}
