import Reactor

/// One loop's unused exchanges, and the buffers that all exchanges share. Loop's thread only.
final class UpstreamStreamPool {
    let loop: EventLoop
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var free: [HTTP1UpstreamStream] = []
    /// Buffers for received bytes. The last returned is lent first, because its memory is in the processor's cache.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var received = InlineArray<8, ByteBuffer> { _ in ByteBuffer() }
    private var receivedCount = 0
    private var piece = ByteBuffer()
    /// Limit of kept exchanges. Without a limit, the memory of a peak would never be freed.
    private static let maxFree = 256

    init(loop: EventLoop) { self.loop = loop }

    /// Returns a free exchange, which comes back to this pool at its end.
    func stream() -> HTTP1UpstreamStream { free.popLast() ?? HTTP1UpstreamStream(streams: self) }

    func giveBack(_ exchange: HTTP1UpstreamStream) {
        if free.count < Self.maxFree { free.append(exchange) }
    }

    // Buffers are lent empty and returned empty. If no buffer is free, the caller allocates memory.

    func lendReceived(_ buffer: inout ByteBuffer) {
        guard receivedCount > 0 else { return }
        receivedCount -= 1
        swap(&buffer, &received[receivedCount])
    }

    func giveBackReceived(_ buffer: inout ByteBuffer) {
        guard receivedCount < received.count else { return buffer.release() }
        swap(&buffer, &received[receivedCount])
        receivedCount += 1
    }

    func lendPiece(_ buffer: inout ByteBuffer) { swap(&buffer, &piece) }
    func giveBackPiece(_ buffer: inout ByteBuffer) { swap(&buffer, &piece) }
}
