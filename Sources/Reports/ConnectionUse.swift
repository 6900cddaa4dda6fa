/// Connections to one upstream.
public struct ConnectionUse: Sendable, Equatable {
    /// Now, those that are being made included.
    public var open = 0
    /// Of those, the ones that nobody uses.
    public var idle = 0
    /// Exchanges that wait for one to become free.
    public var waiting = 0
    /// How many there may be.
    public var limit = 0
    /// Since the start.
    public var opened: UInt64 = 0
    /// Exchanges on a connection that had served another before.
    public var reused: UInt64 = 0
    /// When the first certificate ends of those that the upstream showed, and of their issuers, in seconds since 1970.
    public var certificateEnd: Int64?

    public init() {}

    public var inUse: Int { max(0, open - idle) }

    /// Adds those of another loop, or to another upstream of the same name.
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

/// Connections of programs.
public struct ClientConnections: Sendable, Equatable {
    public var open = 0
    /// Past it they wait to be accepted.
    public var limit = 0

    public init(open: Int = 0, limit: Int = 0) {
        self.open = open
        self.limit = limit
    }
}

/// One event loop.
public struct LoopReport: Sendable, Equatable {
    /// As its thread is called.
    public var name: String
    /// How late it came to what was due, in seconds.
    public var lag: Histogram

    public init(name: String, lag: Histogram) {
        self.name = name
        self.lag = lag
    }
}
