import HTTPMessage

/// A block of IP addresses, as `10.0.0.0/8` or `fd00::/8` write it.
public struct AddressBlock: Sendable, Hashable, CustomStringConvertible {
    /// Its first bits are the block's; 128 bits, IPv4 in its mapped form (RFC 4291, section 2.5.5.2).
    public let high: UInt64
    public let low: UInt64
    /// How many of the 128 bits count.
    public let bits: Int
    /// Canonical.
    public let description: String

    /// - Parameter length: how many bits count of the address as it is written: 0 to 32, or 0 to 128.
    /// - Returns: `nil` for a name, and for a length that the address has not.
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
        description = "\(Grammar.bare(host))/\(length)"
    }
}
