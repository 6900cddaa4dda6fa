/// Of the listening sockets that this process was started with, those that nobody has wanted yet.
///
/// Who wants one gets it by its address; where they can't know that (port 0, a Unix socket whose path is another one seen
/// from here), by its name.
public struct PassedSockets: Sendable {
    public private(set) var unclaimed: [PassedSocket]

    public init(_ all: [PassedSocket] = []) { unclaimed = all }

    /// - Parameters:
    ///   - address: port 0 for any.
    ///   - name: what the socket is called that may be anywhere.
    public mutating func claim(_ address: SocketAddress, name: String) -> PassedSocket? {
        let index =
            unclaimed.firstIndex { $0.address == address }
            ?? unclaimed.firstIndex { $0.name == name && address.mayBe(at: $0.address) }
        return index.map { unclaimed.remove(at: $0) }
    }
}

extension SocketAddress {
    /// Whether what is wanted can be at another address: its port is anybody's choice, or it is a path.
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
