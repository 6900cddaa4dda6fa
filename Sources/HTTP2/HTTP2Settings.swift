/// Side of a connection.
public enum HTTP2Role: Sendable {
    case client
    case server
}

public struct HTTP2Settings: Sendable {
    /// Bytes of a stream that may wait to be consumed. The session keeps none of them, its user does.
    public var streamWindow = 64 << 10
    /// Bytes of the whole connection that may be on their way. Consumed at arrival, so that a slow reader holds its
    /// stream only.
    public var connectionWindow = 1 << 20
    /// Concurrent streams that the peer may open; servers only.
    public var maxStreams = 100
    /// Limit of a header list: the sum of each field's name, value and 32 bytes (RFC 9113, section 6.5.2).
    public var maxHeaderListBytes = 64 << 10
    /// Number of fields in a header list, pseudo-header fields included.
    public var maxFields = 256
    /// Bytes of a stream that wait for the peer's window.
    public var streamOutput = 64 << 10

    public init() {}
}
