import HTTPMessage

/// A block of IP addresses: `10.0.0.0/8` or `fd00::/8`.
public struct AddressBlock: Sendable, Hashable, CustomStringConvertible {
    /// Upper 64 bits of an address of the block. An IPv4 address has its mapped form (RFC 4291, section 2.5.5.2).
    public let high: UInt64
    /// Lower 64 bits of the address.
    public let low: UInt64
    /// Prefix length of the 128-bit address, so 104 for `10.0.0.0/8`.
    public let bits: Int
    /// The canonical address and the written prefix length: `10.0.0.0/8`.
    public let description: String

    /// - Parameter length: prefix length: 0 to 32 for IPv4, 0 to 128 for IPv6.
    /// - Returns: `nil` for a name, and for a length that does not fit the address.
    public init?(_ host: Authority.Host, length: Int) {
        let width: Int
        switch host {
        case .name: return nil
        case .ipv4(let address):
            width = 32
            high = 0
            low = 0xFFFF_0000_0000 | UInt64(address)
        case .ipv6(let high, let low):
            width = 128
            self.high = high
            self.low = low
        }
        guard (0...width).contains(length) else { return nil }
        bits = length + 128 - width
        description = "\(host.bare)/\(length)"
    }
}
