/// An event that a call of `HTTP2Session.receive` or `fill` found. Events keep the order of the frames.
public enum HTTP2Event: Sendable, Equatable {
    /// The head of a request or, for clients, of a final answer.
    case head(stream: Int32, HTTP2Block)
    /// The head of an interim answer, with a status of 1xx.
    case interim(stream: Int32, HTTP2Block)
    case trailers(stream: Int32, HTTP2Block)
    /// A piece of a body. The range is within the bytes of the last `receive`.
    case data(stream: Int32, Range<Int>)
    /// The peer's message ended with END_STREAM.
    case ended(stream: Int32)
    /// The stream's buffer has room again, after a `write` that took less than all.
    case room(stream: Int32)
    /// All of our message was sent, with its end. The peer may still send.
    case sent(stream: Int32)
    /// The stream is closed. This is each stream's last event, unless the connection ends earlier.
    case closed(stream: Int32, HTTP2Closing)
    /// The peer accepts no further streams, and handles none above this one.
    case goAway(lastStream: Int32, HTTP2Code)
    case settings
    /// The peer's answer to a `ping`.
    case pong(UInt64)
}

/// A header list in `HTTP2Session.received`.
public struct HTTP2Block: Sendable, Equatable {
    public let fields: Range<Int>
    /// Whether the block has END_STREAM; `.ended` follows.
    public let endsStream: Bool
    /// Whether the list exceeds the limits. Its last fields are then missing.
    public let isTooLarge: Bool
    /// Size of the list, as HTTP/2 counts it: 32 bytes more for each field (RFC 9113, section 6.5.2).
    public let size: Int
}

public struct HTTP2Closing: Sendable, Equatable {
    /// `.noError` for a stream that ended in order on both sides.
    public let code: HTTP2Code
    /// Whether the peer's message ended with END_STREAM. If not, the message is cut, whatever the code.
    public let hasEnded: Bool
    /// Whether the peer reset the stream, with `code`. If not, `code` comes from libnghttp2 or from our side.
    public let isReset: Bool
    /// Whether the peer has certainly not processed the request. It may then be repeated on another connection.
    public let isUnprocessed: Bool
}
