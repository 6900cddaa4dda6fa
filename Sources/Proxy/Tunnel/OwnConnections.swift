import Reactor
import Synchronization

/// Our ends of all tunnels' connections to their targets. A redirected client at one of them is a tunnel of this process
/// that the kernel has led back. Any thread.
enum OwnConnections {
    private static let ends = Mutex<Set<SocketAddress>>([])

    /// - Returns: the socket's end, to be removed when it closes.
    static func add(_ socket: StreamSocket) -> SocketAddress? {
        let end = plain(socket.localAddress)
        if let end { ends.withLock { _ = $0.insert(end) } }
        return end
    }

    static func remove(_ end: SocketAddress?) {
        if let end { ends.withLock { _ = $0.remove(end) } }
    }

    static func contains(_ client: SocketAddress?) -> Bool {
        guard let client = plain(client) else { return false }
        return ends.withLock { $0.contains(client) }
    }

    /// One form for both spellings of IPv4.
    private static func plain(_ address: SocketAddress?) -> SocketAddress? {
        address.flatMap { address in NumericAddress(address)?.socketAddress(port: address.port) }
    }
}
