import Reactor

final class HTTP2Stream {
    /// Bytes of our message that wait for the peer's window.
    var output = ByteBuffer()
    /// Whether our message ends after `output`.
    var isEnding = false
    /// Whether RST_STREAM was sent or queued.
    var hasSentReset = false
    /// Code of the RST_STREAM that follows `output`.
    var cut: HTTP2Code?
    var trailers = HTTP2FieldList()
    /// Size of our heads and trailers that libnghttp2 has not sent yet, and their number.
    var unsentHeads = (bytes: 0, count: 0)
    /// Size to which the receive window grows when libnghttp2 knows the stream; 0 for none.
    var window = 0
    /// Bytes of the peer's message that are not given back to the connection's window.
    var unconsumed = 0
    /// Whether the rest of the peer's message goes back to the connection's window at once.
    var isForfeit = false
    /// Whether libnghttp2 waits for `nghttp2_session_resume_data`.
    var isDeferred = false
    /// Whether a `write` took fewer bytes than it was given.
    var wantsRoom = false
    /// Whether the session's user knows the stream.
    var isAnnounced: Bool
    var hasEnded = false
    var isReset = false
    /// Whether another connection may send the request, if libnghttp2 could not send its head here; otherwise `nil`.
    var mayRetryUnsent: Bool?

    init(isAnnounced: Bool) { self.isAnnounced = isAnnounced }
}
