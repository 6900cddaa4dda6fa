import NIOCore
import NIOHTTPTypes

/// Keeps one connection from costing more than its share: a whole request within 10 s of the connection or of the last
/// answer, at most 64 KiB of body, and an answer that the client takes off our hands.
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
    private var unanswered = 0
    private var bodySize = 0

    init(requestTimeout: TimeAmount = ConnectionGuard.requestTimeout) { self.requestTimeout = requestTimeout }

    func handlerAdded(context: ChannelHandlerContext) { expectRequest(context) }

    func handlerRemoved(context: ChannelHandlerContext) {
        requestDeadline?.cancel()
        stallDeadline?.cancel()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head:
            bodySize = 0
            expectRequest(context)
        case .body(let part):
            bodySize += part.readableBytes
            guard bodySize <= Self.maxBody else { return context.close(promise: nil) }
        case .end:
            unanswered += 1
            requestDeadline?.cancel()
            requestDeadline = nil
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = unwrapOutboundIn(data) {
            unanswered -= 1
            if unanswered <= 0 { expectRequest(context) }
        }
        context.write(data, promise: promise)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            stallDeadline?.cancel()
            stallDeadline = nil
        } else if stallDeadline == nil {
            stallDeadline = closing(context, in: Self.stallTimeout)
        }
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        requestDeadline?.cancel()
        stallDeadline?.cancel()
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
