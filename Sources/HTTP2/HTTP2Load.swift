/// Work and memory that a session's messages cost at the moment.
public struct HTTP2Load: Sendable {
    /// Number of bytes of our bodies that wait for the peer's windows, or for the next `fill`.
    public internal(set) var unsentBytes = 0
    /// Size of our heads and trailers that wait for the next `fill`.
    public internal(set) var unsentHeads = 0
    /// Size of the header lists that the last `receive` has decoded, as HTTP/2 counts it (RFC 9113, section 6.5.2), with
    /// `listWork` more for each. A few bytes of HPACK can stand for large fields.
    public internal(set) var decoded = 0
    static let listWork = 2 << 10
    /// Whether the last `receive` stopped before its end, because it had decoded many lists.
    public internal(set) var isPaused = false
    /// Number of bytes of the peer's bodies that the user has not consumed, with `HTTP2Settings.boundsBodies`.
    var unconsumed = 0
}
