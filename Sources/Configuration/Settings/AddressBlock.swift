import HTTPMessage

/// A block of IP addresses: `10.0.0.0/8` or `fd00::/8`.
public struct AddressBlock: Sendable, Hashable, CustomStringConvertible {
    /// The block's prefix in 128 bits, IPv4 in its mapped form (RFC 4291, section 2.5.5.2).
    public let high: UInt64
    public let low: UInt64
    /// Length of the prefix, of 128 bits.
    public let bits: Int
    /// Canonical.
    public let description: String

    /// - Parameter length: prefix length in the address's own form: 0 to 32, or 0 to 128.
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
