public import HTTPMessage
public import Reactor

/// A policy for the addresses that may be dialled. It judges the resolved address at the time of dialling, so no name
/// and no notation can avoid it.
public struct AddressPolicy: Sendable, Equatable {
    public enum Verdict: Sendable, Equatable {
        case allowed
        /// A Unix socket. With `publicOnly`, also this machine's addresses and non-public ones, except `exceptions`.
        case denied
        /// Address of a listener of this process.
        case own
    }

    /// Listeners of this process. An unspecified address stands for all local addresses.
    public var own = OwnListeners()
    /// Whether only `exceptions` and public addresses of other machines are allowed.
    public var publicOnly = false
    public var exceptions: [AddressBlock] = []

    public init() {}

    public func judge(_ address: SocketAddress) -> Verdict {
        guard let dialled = NumericAddress(address) else { return .denied }
        if own.contains(dialled, port: address.port) { return .own }
        guard publicOnly, !exceptions.contains(where: { $0.contains(dialled) }) else { return .allowed }
        if Self.special.contains(where: { $0.contains(dialled) }) { return .denied }
        // This machine's services count as private, even on a public address.
        return InterfaceAddresses.shared.contains(dialled) ? .denied : .allowed
    }

    static let loopback = ["127.0.0.0/8", "::1"].compactMap { AddressBlock($0) }

    /// Blocks that are not public: special-purpose blocks of IANA's registries (RFC 6890), multicast, and prefixes that
    /// translate to such blocks (RFC 6052, 2765, 3056, 4380). Also 168.63.129.16, Azure's metadata address, which is in
    /// no such block.
    private static let special = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64",
        "100:0:0:1::/64", "2001::/23",
        "168.63.129.16", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10",
        "ff00::/8",
    ].compactMap { AddressBlock($0) }
}

extension AddressBlock {
    package func contains(_ address: NumericAddress) -> Bool {
        // A shift by 64 or more leaves 0.
        let highMask: UInt64 = ~0 << (64 - min(bits, 64))
        let lowMask: UInt64 = ~0 << (64 - max(0, bits - 64))
        return (address.high ^ high) & highMask == 0 && (address.low ^ low) & lowMask == 0
    }
}
