import Reactor

/// Exchanges of one loop that are not in use, and the buffers that all of them share. Loop's thread only.
final class ExchangeRack {
    let loop: EventLoop
    private var free: [CarriedExchange] = []
    private var received = ByteBuffer()
    private var piece = ByteBuffer()
    /// More than this are not kept: as many as were needed at once would stay for ever.
    private static let maxFree = 256

    init(loop: EventLoop) { self.loop = loop }

    /// Which comes back by itself when it is over.
    func exchange() -> CarriedExchange { free.popLast() ?? CarriedExchange(rack: self) }

    func take(back exchange: CarriedExchange) {
        if free.count < Self.maxFree { free.append(exchange) }
    }

    // Lent out and given back empty, so that whoever uses one within another's use just gets a new one.

    func lendReceived(_ buffer: inout ByteBuffer) { swap(&buffer, &received) }
    func giveBackReceived(_ buffer: inout ByteBuffer) { swap(&buffer, &received) }
    func lendPiece(_ buffer: inout ByteBuffer) { swap(&buffer, &piece) }
    func giveBackPiece(_ buffer: inout ByteBuffer) { swap(&buffer, &piece) }
}
