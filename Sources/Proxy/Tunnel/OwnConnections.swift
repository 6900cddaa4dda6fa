import Reactor
import Synchronization

/// Local addresses of the connections from tunnels to their targets. If a redirected program has such an address, the
/// kernel redirected a connection of this process back to it. Any thread.
enum OwnConnections {
    private static let addresses = Mutex<Set<SocketAddress>>([])

    /// - Returns: the socket's local address. The caller must remove it when the socket closes.
    static func add(_ socket: StreamSocket) -> SocketAddress? {
        let address = plain(socket.localAddress)
        if let address { addresses.withLock { _ = $0.insert(address) } }
        return address
    }

    static func remove(_ address: SocketAddress?) {
        if let address { addresses.withLock { _ = $0.remove(address) } }
    }

    static func contains(_ program: SocketAddress?) -> Bool {
        guard let program = plain(program) else { return false }
        return addresses.withLock { $0.contains(program) }
    }

    /// Returns the same form for an IPv4 address and for its IPv4-mapped IPv6 address.
    private static func plain(_ address: SocketAddress?) -> SocketAddress? {
        address.flatMap { address in NumericAddress(address)?.socketAddress(port: address.port) }
    }
}
