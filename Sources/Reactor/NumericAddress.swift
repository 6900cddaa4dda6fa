import Glibc

/// An IP address without port and interface: 128 bits. An IPv4 address is in its mapped form (RFC 4291, section
/// 2.5.5.2), so `192.0.2.1` equals `::ffff:192.0.2.1`.
public struct NumericAddress: Sendable, Hashable, CustomStringConvertible {
    public let high: UInt64
    public let low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    public init(ipv4 address: UInt32) { self.init(high: 0, low: 0xffff_0000_0000 | UInt64(address)) }

    /// Returns `nil` for a Unix socket.
    public init?(_ address: SocketAddress) {
        switch address.kind {
        case .ipv4(let bits, _): self.init(ipv4: bits)
        case .ipv6(let high, let low, _, _): self.init(high: high, low: low)
        case .unix: return nil
        }
    }

    /// Reads the forms of inet_aton(3) and inet_pton(3), including short forms of IPv4 and brackets; `nil` for a name.
    public init?(_ text: String) {
        var plain = text[...]
        if plain.first == "[", plain.last == "]" { plain = plain.dropFirst().dropLast() }
        if let address = SocketAddress(numericHost: String(plain), port: 0) {
            self.init(address)
            return
        }
        var four = in_addr()
        // inet_aton ignores everything behind a space.
        guard !plain.contains(where: \.isWhitespace), unsafe inet_aton(String(plain), &four) != 0 else { return nil }
        self.init(ipv4: UInt32(bigEndian: four.s_addr))
    }

    static let loopback = [NumericAddress(high: 0, low: 1), NumericAddress(ipv4: 0x7f00_0001)]

    public var isIPv4: Bool { high == 0 && low >> 32 == 0xffff }
    public var isUnspecified: Bool { (high == 0 && low == 0) || (isIPv4 && low & 0xffff_ffff == 0) }

    public func socketAddress(port: UInt16) -> SocketAddress {
        isIPv4
            ? SocketAddress(.ipv4(address: UInt32(truncatingIfNeeded: low), port: port))
            : SocketAddress(.ipv6(high: high, low: low, scope: 0, port: port))
    }

    /// The address as text, IPv6 in brackets.
    public var description: String { String(socketAddress(port: 0).description.dropLast(2)) }
}
