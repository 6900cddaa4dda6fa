/// Connections to one upstream.
public struct ConnectionUse: Sendable, Equatable {
    /// Current connections, including connections that are being opened.
    public var open = 0
    /// Open connections without an exchange.
    public var idle = 0
    /// Exchanges that wait for a free connection.
    public var waiting = 0
    /// Limit of open connections.
    public var limit = 0
    /// Connections opened since the start.
    public var opened: UInt64 = 0
    /// Exchanges on a connection that had already served an exchange.
    public var reused: UInt64 = 0
    /// Earliest expiry among the upstream's certificates and their issuers' certificates, in seconds since 1970.
    public var certificateEnd: Int64?

    public init() {}

    public var inUse: Int { max(0, open - idle) }

    /// Adds the connections of another loop, or of another upstream with the same name.
    public mutating func add(_ other: ConnectionUse) {
        open += other.open
        idle += other.idle
        waiting += other.waiting
        limit += other.limit
        opened &+= other.opened
        reused &+= other.reused
        certificateEnd = [certificateEnd, other.certificateEnd].compactMap(\.self).min()
    }
}
