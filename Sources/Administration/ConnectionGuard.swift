import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Keeps one connection from costing more than its share: one request at a time, a whole request within 10 s of the connection or of the last
/// answer, at most 64 KiB of body, an answer that the client takes off our hands, and a place in the listener's room only
/// as long as nobody needs it more.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    static let requestTimeout = TimeAmount.seconds(10)
    static let stallTimeout = TimeAmount.seconds(30)
    static let maxBody = 64 * 1024

    private let requestTimeout: TimeAmount
    private var requestDeadline: Scheduled<Void>?
    private var stallDeadline: Scheduled<Void>?
    private let gate = RequestGate()
    /// A whole request is there, and its answer is not yet.
    private var isBusy = false
    private var bodySize = 0
    private let room: ConnectionRoom
    private var place: UInt64?
    private var isProbe = false
    private var pending: [HTTPRequestPart] = []
    /// A request was turned away or was to be the last, and nothing that follows it is read.
    private var isOver = false

    init(_ room: ConnectionRoom, requestTimeout: TimeAmount = ConnectionGuard.requestTimeout) {
        self.room = room
        self.requestTimeout = requestTimeout
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        place = room.enter { channel.close(promise: nil) }
        guard place != nil else { return channel.close(promise: nil) }
        do {
            try context.pipeline.syncOperations.addHandler(gate, position: .first)
            let options = channel.syncOptions
            try options?.setOption(
                .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: RequestGate.readSize))
            try options?.setOption(.maxMessagesPerRead, value: 1)
        } catch {
            return channel.close(promise: nil)
        }
        expectRequest(context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        leave()
        requestDeadline?.cancel()
        stallDeadline?.cancel()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        let part = unwrapInboundIn(data)
        switch part {
        case .head(let head):
            bodySize = 0
            isProbe = Self.isProbe(head)
            expectRequest(context)
        case .body(let part):
            bodySize += part.readableBytes
            guard bodySize <= Self.maxBody else { return context.close(promise: nil) }
        case .end:
            isBusy = true
            gate.shut()
            requestDeadline?.cancel()
            requestDeadline = nil
            if let place, !room.set(place, isProbe ? .probe : .other) { return turnAway(context) }
        }
        // Whoever answers begins with the head, and a request that is not whole yet shall keep nobody busy.
        pending.append(part)
        guard case .end = part else { return }
        for part in pending { context.fireChannelRead(wrapInboundOut(part)) }
        pending.removeAll()
    }

    /// The four paths that orchestrators and scrapers ask for, whatever their query.
    private static func isProbe(_ head: HTTPRequest) -> Bool {
        ["/livez", "/healthz", "/readyz", "/metrics"].contains(head.path?.prefix { $0 != "?" } ?? "")
    }

    private func turnAway(_ context: ChannelHandlerContext) {
        isOver = true
        pending.removeAll()
        expectRequest(context)
        let text = ByteBuffer(string: "Too many requests are under way. Try again in a moment.\n")
        let head = HTTPResponse(
            status: .serviceUnavailable,
            headerFields: [
                .contentType: "text/plain; charset=utf-8", .contentLength: String(text.readableBytes),
                .connection: "close", .cacheControl: "no-store",
            ])
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(text)), promise: nil)
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in channel.close(promise: nil) }
    }

    /// After the last answer the client has as long to go as it would have for a request.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode == .output {
            isOver = true
            isBusy = false
            pending.removeAll()
            gate.endRequests()
            expectRequest(context)
            if let place { room.set(place, .waiting) }
        }
        context.close(mode: mode, promise: promise)
    }

    private func leave() {
        if let place { room.leave(place) }
        place = nil
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .end = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
        isBusy = false
        expectRequest(context)
        if let place { room.set(place, .waiting) }
        let promise = promise ?? context.eventLoop.makePromise()
        promise.futureResult.assumeIsolated().whenSuccess { [gate] in gate.open() }
        context.write(data, promise: promise)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            stallDeadline?.cancel()
            stallDeadline = nil
            // It was there before, so it is not turned away now.
            if isBusy, let place { room.set(place, isProbe ? .probe : .other) }
        } else if stallDeadline == nil {
            stallDeadline = closing(context, in: Self.stallTimeout)
            if isBusy, let place { room.set(place, .stalled) }
        }
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        requestDeadline?.cancel()
        stallDeadline?.cancel()
        leave()
        context.fireChannelInactive()
    }

    private func expectRequest(_ context: ChannelHandlerContext) {
        guard requestDeadline == nil else { return }
        requestDeadline = closing(context, in: requestTimeout)
    }

    private func closing(_ context: ChannelHandlerContext, in time: TimeAmount) -> Scheduled<Void> {
        let channel = context.channel
        return context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
    }
}

/// Lets only processes of our own user, and root's, talk over the admin socket, whatever its mode says.
final class PeerGuard: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart

    /// `struct ucred` of unix(7).
    private struct Credentials: Sendable {
        var process: Int32 = 0
        var user: UInt32 = .max
        var group: UInt32 = .max
    }

    /// SO_PEERCRED of <asm-generic/socket.h>.
    private static let peerCredentials = NIOBSDSocket.Option(rawValue: 17)

    private let allowed: [UInt32]

    init(allowed: [UInt32]) { self.allowed = allowed }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        guard let options = channel as? any SocketOptionProvider else { return channel.close(promise: nil) }
        let found: EventLoopFuture<Credentials> = options.unsafeGetSocketOption(
            level: .socket, name: Self.peerCredentials)
        found.whenComplete { [allowed] result in
            guard case .success(let peer) = result, allowed.contains(peer.user) else {
                return channel.close(promise: nil)
            }
        }
    }
}
