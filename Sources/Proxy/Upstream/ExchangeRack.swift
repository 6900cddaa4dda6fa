import Reactor

/// Exchanges of one loop that are not in use, and the buffers that all of them share. Loop's thread only.
final class ExchangeRack {
    let loop: EventLoop
    private var free: [CarriedExchange] = []
    /// The last one first: its memory is in the processor's cache.
    private var received = InlineArray<8, ByteBuffer> { _ in ByteBuffer() }
    private var receivedCount = 0
    private var piece = ByteBuffer()
    /// No more than this are kept, or the most that were ever needed at once would stay for ever.
    private static let maxFree = 256

    init(loop: EventLoop) { self.loop = loop }

    /// Which comes back by itself when it is over.
    func exchange() -> CarriedExchange { free.popLast() ?? CarriedExchange(rack: self) }

    func take(back exchange: CarriedExchange) {
        if free.count < Self.maxFree { free.append(exchange) }
    }

    // Lent out and given back empty: one that is asked for while another is in use is a new one.

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
