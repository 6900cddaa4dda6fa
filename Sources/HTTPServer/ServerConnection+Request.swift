import HTTPMessage
import Reactor

// The current request: its head and its body.
extension ServerConnection {
    /// The head of the current request.
    public var head: RequestHead { reader.head }

    /// Lends the head, and the bytes that its ranges refer to.
    @inline(__always) public func withHead<Result, Failure: Error>(
        _ read: (RequestHead, Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try reader.withHead(read)
    }

    /// The request's body has been read to its end.
    public var isRequestComplete: Bool { reader.isComplete }

    /// Bytes of the body read in this pass.
    public var bodyTaken: UInt64 { reader.taken }

    /// Trailers that may be passed on; complete once the body is done.
    public var bodyTrailers: [(name: [UInt8], value: [UInt8])] { reader.trailers }

    /// Whether the client sent bytes behind the request without waiting for an answer.
    public var hasInput: Bool { !reader.input.isEmpty }

    /// Reads the bytes that have arrived, so that `hasInput` is up to date.
    /// - Returns: `false` when the client is gone; `clientLeft` was called.
    public func lookForInput() -> Bool {
        guard phase == .busy, !reader.lookForInput(at: stream) else { return phase == .busy }
        leave()
        return false
    }

    /// The client has ended its side, though earlier bytes may be unread. A client that is gone looks the same.
    public var hasClientEnded: Bool { reader.input.isEnding }

    /// Keeps up to `limit` bytes of the body, so that it can be read again.
    public func keepBody(upTo limit: Int) { reader.keep(upTo: limit) }

    /// Whether the body can be read again from its first byte.
    public var canRewindBody: Bool { reader.canRewind }

    /// - Returns: `false`, and changes nothing, when the first bytes are gone.
    public func rewindBody() -> Bool { reader.rewind() }

    /// Treats all further bytes as body, unchanged, until the client ends its side: the protocol has changed.
    public func beginRawBody() { reader.beginRaw() }

    public enum BodyStep: Sendable, Equatable {
        /// Number of bytes stored, above 0.
        case bytes(Int)
        /// No bytes now. `bodyArrived` reports the next ones.
        case wait
        case end
        /// The client ended its side in the middle of the body.
        case cut
        /// The client is gone; `clientLeft` was called.
        case gone
    }

    /// Reads the next piece of the body.
    /// - Throws: `MessageError` for malformed chunks.
    public func takeBody(into room: inout MutableSpan<UInt8>) throws(MessageError) -> BodyStep {
        waits.forBody = false
        let step = try reader.take(from: stream, into: &room)
        switch step {
        case .wait: waits.forBody = true
        case .gone: leave()
        case .bytes, .end, .cut: break
        }
        return step
    }
}
