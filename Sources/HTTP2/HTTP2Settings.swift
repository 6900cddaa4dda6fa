/// Side of a connection.
public enum HTTP2Role: Sendable {
    case client
    case server
}

public struct HTTP2Settings: Sendable {
    /// Flow-control window of a stream: limit of the bytes that the session's user has not consumed yet.
    public var streamWindow = 64 << 10
    /// Flow-control window of the connection, in bytes.
    public var connectionWindow = 1 << 20
    /// Whether the connection's window bounds the bytes of all streams that the session's user has not consumed. If not,
    /// the session gives bytes back to this window as they arrive, so that a slow reader stops only its own stream.
    public var boundsBodies = false
    /// Size of decoded header lists after which one `receive` begins no further list.
    public var maxDecodedBytes = 64 << 10
    /// Concurrent streams that the peer may open; servers only.
    public var maxStreams = 100
    /// Limit of a header list: the sum of each field's name, value and 32 bytes (RFC 9113, section 6.5.2).
    public var maxHeaderListBytes = 64 << 10
    /// Number of fields in a header list, pseudo-header fields included.
    public var maxFields = 256
    /// Limit of a stream's bytes that wait for the peer's window.
    public var streamOutput = 64 << 10

    public init() {}
}
