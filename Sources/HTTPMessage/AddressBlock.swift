/// A block of IP addresses: `10.0.0.0/8` or `fd00::/8`. An IPv4 block also covers its IPv4-mapped IPv6 form.
public struct AddressBlock: Sendable, Hashable, CustomStringConvertible {
    /// Upper 64 bits of an address of the block. An IPv4 address has its mapped form (RFC 4291, section 2.5.5.2).
    public let high: UInt64
    /// Lower 64 bits of the address.
    public let low: UInt64
    /// Prefix length of the 128-bit address, so 104 for `10.0.0.0/8`.
    public let bits: Int
    /// The canonical address and the written prefix length: `10.0.0.0/8`.
    public let description: String

    /// - Parameter length: prefix length: 0 to 32 for IPv4, 0 to 128 for IPv6; `nil` for a single address.
    /// - Returns: `nil` for a name, and for a length that does not fit the address.
    public init?(_ host: Authority.Host, length: Int? = nil) {
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
        let length = length ?? width
        guard (0...width).contains(length) else { return nil }
        bits = length + 128 - width
        description = "\(host.bare)/\(length)"
    }

    /// Reads a block, or a single address; `nil` for other text.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let length = parts.count == 2 ? Int(parts[1]) : nil
        guard parts.count == 1 || length != nil, !parts[0].hasPrefix("["),
            let address = try? Authority(parsing: parts[0].contains(":") ? "[\(parts[0])]" : String(parts[0])),
            address.port == nil
        else { return nil }
        self.init(address.host, length: length)
    }
}
