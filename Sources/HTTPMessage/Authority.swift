import WireText

/// A host and an optional port in one canonical form, for matching, dialling, SNI and Host alike: lower case, no
/// trailing dot, IPv6 by RFC 5952, IPv4 as a dotted quad, no userinfo, no percent-encoding. `AuthorityParts` lists the
/// refused spellings.
///
/// Equal authorities are the same to every resolver. The default port is not filled in, because it depends on the
/// scheme: see `port(for:)`.
public struct Authority: Sendable, Hashable, CustomStringConvertible {
    public enum Host: Sendable, Hashable, CustomStringConvertible {
        /// Lower case, without a trailing dot.
        case name(String)
        /// In host byte order: 127.0.0.1 is 0x7F000001.
        case ipv4(UInt32)
        case ipv6(high: UInt64, low: UInt64)

        /// As in a Host field: IPv6 in brackets.
        public var description: String {
            switch self {
            case .name(let name): name
            case .ipv4(let address): IPv4Text.format(address)
            case .ipv6(let high, let low): "[" + IPv6Text.format(high: high, low: low) + "]"
            }
        }

        /// In the spelling of sockets and certificates: IPv6 without brackets.
        public var bare: String {
            if case .ipv6(let high, let low) = self { IPv6Text.format(high: high, low: low) } else { description }
        }

        public var isAddress: Bool { if case .name = self { false } else { true } }

        /// Whether the host is one of the names of this machine that RFC 8252, section 7.3 has.
        public var isThisMachine: Bool { ["127.0.0.1", "::1", "localhost"].contains(bare) }

        /// Whether the host is in 127.0.0.0/8, ::1, an IPv4-mapped loopback address, `localhost` or a name below it
        /// (RFC 6761 6.3). Not 0.0.0.0 and `::`, which listen on every interface.
        public var isLoopback: Bool {
            switch self {
            case .name(let name): name == "localhost" || name.hasSuffix(".localhost")
            case .ipv4(let address): address >> 24 == 127
            case .ipv6(let high, let low):
                high == 0 && (low == 1 || (low >> 32 == 0xFFFF && low >> 24 & 0xFF == 127))
            }
        }
    }

    public var host: Host
    /// 1 to 65535; `nil` when none was written.
    public var port: UInt16?

    public init(host: Host, port: UInt16?) {
        self.host = host
        self.port = port
    }

    /// Parses `host`, `host:port`, `[v6]` or `[v6]:port`.
    /// - Throws: status 400 and a sentence about the fault.
    public init(parsing bytes: Span<UInt8>) throws(MessageError) {
        try self.init(parsing: bytes, ByteRange(0, bytes.count))
    }

    /// Parses a part of a buffer, for example `RequestHead.host`.
    public init(parsing bytes: Span<UInt8>, _ range: ByteRange) throws(MessageError) {
        let parts = try AuthorityParts(bytes, range)
        port = parts.port
        switch parts.host {
        case .ipv4(let address): host = .ipv4(address)
        case .ipv6(let high, let low): host = .ipv6(high: high, low: low)
        case .name(let name):
            host = .name(Self.lowercased(bytes.extracting(name.range)))
        }
    }

    /// Makes no array when there is no upper-case letter, as on nearly every request.
    private static func lowercased(_ name: Span<UInt8>) -> String {
        let isLower = !name.indices.contains { name[$0] &- 0x41 < 26 }
        if isLower, let text = try? UTF8Span(validating: name) { return String(copying: text) }
        return String(decoding: name.indices.map { ASCII.lowercased(name[$0]) }, as: UTF8.self)
    }

    public init(parsing string: String) throws(MessageError) {
        let bytes = [UInt8](string.utf8)
        try self.init(parsing: bytes.span)
    }

    public var description: String {
        if let port { "\(host):\(port)" } else { host.description }
    }

    public func port(for scheme: Scheme) -> UInt16 { port ?? scheme.defaultPort }

    /// As in a Host field (RFC 9110, section 4.2.3).
    public func without(defaultPortOf scheme: Scheme) -> Authority {
        Authority(host: host, port: port == scheme.defaultPort ? nil : port)
    }
}
