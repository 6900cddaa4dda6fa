/// The sockets passed at the start that no listener has claimed yet.
///
/// A listener claims its socket by address. If no address matches, the listener claims a socket by name: the listener's
/// port may be 0, or a Unix socket may have another path in the passing process.
public struct PassedSockets: Sendable {
    public private(set) var unclaimed: [PassedSocket]

    public init(_ all: [PassedSocket] = []) { unclaimed = all }

    /// - Parameters:
    ///   - address: the listener's address; port 0 stands for any port.
    ///   - name: name of the socket, used if no address matches.
    public mutating func claim(_ address: SocketAddress, name: String) -> PassedSocket? {
        let index =
            unclaimed.firstIndex { $0.address == address }
            ?? unclaimed.firstIndex { $0.name == name && address.mayBe(at: $0.address) }
        return index.map { unclaimed.remove(at: $0) }
    }
}

extension SocketAddress {
    /// Whether this address may mean a socket at `other`: this port is 0 and the hosts are equal, or both are paths.
    fileprivate func mayBe(at other: SocketAddress) -> Bool {
        switch (kind, other.kind) {
        case (.ipv4(let mine, 0), .ipv4(let theirs, _)): mine == theirs
        case (.ipv6(let high, let low, _, 0), .ipv6(let otherHigh, let otherLow, _, _)):
            high == otherHigh && low == otherLow
        case (.unix, .unix): true
        default: false
        }
    }
}
