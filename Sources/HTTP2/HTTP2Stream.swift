import Reactor

final class HTTP2Stream {
    /// Bytes of our message that wait for the peer's window.
    var output = ByteBuffer()
    /// Our message ends behind `output`.
    var isEnding = false
    /// Whether RST_STREAM was sent or queued.
    var hasSentReset = false
    /// Fields behind our message.
    var trailers = HTTP2FieldList()
    /// libnghttp2 waits for `nghttp2_session_resume_data`.
    var isDeferred = false
    /// Whether a `write` took fewer bytes than it was given.
    var wantsRoom = false
    /// The user knows the stream.
    var isAnnounced: Bool
    var hasEnded = false
    var isReset = false
    /// Whether another connection may send our request; `nil`: its HEADERS frame did not fail.
    var mayRetryUnsent: Bool?

    init(isAnnounced: Bool) { self.isAnnounced = isAnnounced }
}
