import NIOCore

/// Lets one request at a time through to the parser: what follows it stays as bytes, and nothing more is read from the
/// socket, until the answer is with the kernel. Stands first in the pipeline; `ConnectionGuard` shuts and opens it.
final class RequestGate: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Bytes of one read, and so of what is held back while the client keeps its side open.
    static let readSize = 4 * 1024
    /// Bytes that are held back at most: once a client ends its side, all that it sent before comes in at once.
    static let capacity = 16 * 1024

    /// From an answer to the next request, if that one did not wait for it: else a few hundred connections with many
    /// requests each keep the machine from everybody who asks one thing at a time.
    static let pause = TimeAmount.milliseconds(200)

    private var context: ChannelHandlerContext?
    private var nextTurn: Scheduled<Void>?
    private var held = ByteBuffer()
    private var isShut = false
    private var isFeeding = false
    private var wantsRead = false
    private var hasEnded = false
    private var isOver = false

    /// A whole request has come through.
    func shut() { isShut = true }

    /// Its answer is with the kernel.
    func open() {
        guard isShut, nextTurn == nil, let context else { return }
        guard held.readableBytes > 0 else {
            isShut = false
            return goOn(context)
        }
        nextTurn = context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) { [self] in takeTurn() }
    }

    private func takeTurn() {
        nextTurn = nil
        guard let context, !isOver else { return }
        isShut = false
        feed(context)
        context.fireChannelReadComplete()
        goOn(context)
    }

    /// No further request is answered: what comes is thrown away unread, up to the client's end.
    func endRequests() {
        isOver = true
        held = ByteBuffer()
        isShut = false
        if let context { goOn(context) }
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        nextTurn?.cancel()
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        var bytes = unwrapInboundIn(data)
        if held.readableBytes == 0 { held = bytes } else { held.writeBuffer(&bytes) }
        feed(context)
        if held.readableBytes > Self.capacity {
            held = ByteBuffer()
            context.close(promise: nil)
        }
    }

    /// Line by line: a line ends at most one request, so that the gate is shut before the next is parsed.
    private func feed(_ context: ChannelHandlerContext) {
        guard !isFeeding else { return }
        isFeeding = true
        while !isShut, held.readableBytes > 0 {
            let view = held.readableBytesView
            let count = view.firstIndex(of: 0x0A).map { view.distance(from: view.startIndex, to: $0) + 1 } ?? view.count
            guard let line = held.readSlice(length: count) else { break }
            context.fireChannelRead(wrapInboundOut(line))
        }
        isFeeding = false
        if held.readableBytes == 0 { held = ByteBuffer() }
    }

    /// What waited for the bytes that were held back.
    private func goOn(_ context: ChannelHandlerContext) {
        guard !isShut, held.readableBytes == 0 else { return }
        if hasEnded {
            hasEnded = false
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }
        if wantsRead {
            wantsRead = false
            context.read()
        }
    }

    func read(context: ChannelHandlerContext) {
        guard !isShut, held.readableBytes == 0 else { return wantsRead = true }
        context.read()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(.inputClosed) = event as? ChannelEvent, held.readableBytes > 0 {
            hasEnded = true
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        nextTurn?.cancel()
        held = ByteBuffer()
        context.fireChannelInactive()
    }
}
