/// The sockets passed at the start that no listener has claimed yet.
///
/// A listener claims its socket by address. Where the address can't be known (port 0, or a Unix socket whose path
/// differs from here), it claims by name.
public struct PassedSockets: Sendable {
    public private(set) var unclaimed: [PassedSocket]

    public init(_ all: [PassedSocket] = []) { unclaimed = all }

    /// - Parameters:
    ///   - address: port 0 for any port.
    ///   - name: of the socket, used where its address can't be known.
    public mutating func claim(_ address: SocketAddress, name: String) -> PassedSocket? {
        let index =
            unclaimed.firstIndex { $0.address == address }
            ?? unclaimed.firstIndex { $0.name == name && address.mayBe(at: $0.address) }
        return index.map { unclaimed.remove(at: $0) }
    }
}

extension SocketAddress {
    /// Whether this address can stand for another one: its port is 0, or it is a path.
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
