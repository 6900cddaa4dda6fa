import CLinux
import Glibc

/// A connected, non-blocking stream socket. Used on the loop's thread only; closes itself when freed.
public final class StreamSocket: ByteStream {
    public let descriptor: Int32
    private let loop: EventLoop
    /// The user of an enclosed program at the other end; `nil` for any other peer.
    private let enclosed: PeerCredentials?
    private var isOpen = true
    private var isRegistered = false

    /// Takes ownership of `descriptor`.
    init(descriptor: Int32, loop: EventLoop, enclosed: PeerCredentials? = nil) {
        self.descriptor = descriptor
        self.enclosed = enclosed
        self.loop = loop
    }

    /// Duplicates the descriptor of a connected, non-blocking socket whose owner is about to close it.
    public static func duplicate(_ descriptor: Int32, loop: EventLoop) throws(SystemError) -> StreamSocket {
        StreamSocket(descriptor: try check("fcntl", fcntl(descriptor, F_DUPFD_CLOEXEC, 0)), loop: loop)
    }

    deinit { if isOpen { Glibc.close(descriptor) } }

    public func register(_ handler: any ReadinessHandler) throws(SystemError) {
        guard !isRegistered else { return try loop.change(descriptor, to: handler) }
        try loop.register(descriptor, handler: handler)
        isRegistered = true
    }

    public var peerCredentials: PeerCredentials? {
        enclosed ?? PeerCredentials(of: descriptor)
    }

    public var peerAddress: SocketAddress? { isOpen ? SocketAddress(peer: descriptor) : nil }

    public var localAddress: SocketAddress? { isOpen ? SocketAddress(own: descriptor) : nil }

    public var originalDestination: SocketAddress? {
        // In an enclosure each address is local, and the dialled one is our own.
        guard enclosed == nil else { return localAddress }
        return isOpen ? SocketAddress(original: descriptor) : nil
    }

    public var unacknowledged: Int { isOpen ? Int(heimdallr_unacknowledged(descriptor)) : 0 }

    public func close() {
        guard isOpen else { return }
        isOpen = false
        loop.unregister(descriptor)
        Glibc.close(descriptor)
    }

    public func shutdownWriting() {
        if isOpen { _ = shutdown(descriptor, Int32(SHUT_WR)) }
    }

    public func resetOnClose() { _ = setOption(SO_LINGER, to: linger(l_onoff: 1, l_linger: 0), on: descriptor) }

    /// One recv(2).
    public func read(into buffer: inout ByteBuffer, limit: Int) -> Transferred {
        guard isOpen else { return .failed(SystemError("recv", code: EBADF)) }
        let descriptor = self.descriptor
        while true {
            let count = unsafe buffer.withSpareCapacity(limit) { spare in
                unsafe recv(descriptor, spare.baseAddress, min(limit, spare.count), 0)
            }
            if count > 0 { return .bytes(count) }
            if count == 0 { return .endOfStream }
            if errno != EINTR { return Self.failure("recv") }
        }
    }

    public func write(from buffer: inout ByteBuffer) -> Transferred {
        guard isOpen else { return .failed(SystemError("send", code: EBADF)) }
        let count = unsafe buffer.bytes.withUnsafeBytes { bytes in
            Self.retrying { unsafe send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) }
        }
        guard count >= 0 else { return Self.failure("send") }
        buffer.consume(count)
        return .bytes(count)
    }

    /// One sendmsg(2).
    public func write(from buffer: inout ByteBuffer, then body: Span<UInt8>) -> Transferred {
        guard isOpen else { return .failed(SystemError("sendmsg", code: EBADF)) }
        let count = unsafe buffer.bytes.withUnsafeBytes { head in
            unsafe body.withUnsafeBytes { body in
                var parts: InlineArray<2, iovec> = unsafe [
                    iovec(iov_base: .init(mutating: head.baseAddress), iov_len: head.count),
                    iovec(iov_base: .init(mutating: body.baseAddress), iov_len: body.count),
                ]
                var span = unsafe parts.mutableSpan
                return unsafe span.withUnsafeMutableBufferPointer { parts in
                    var message = unsafe msghdr()
                    unsafe message.msg_iov = parts.baseAddress
                    unsafe message.msg_iovlen = parts.count
                    return Self.retrying { unsafe sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL)) }
                }
            }
        }
        guard count >= 0 else { return Self.failure("sendmsg") }
        buffer.consume(min(count, buffer.count))
        return .bytes(count)
    }

    private static func retrying(_ call: () -> Int) -> Int {
        while true {
            let count = call()
            if count >= 0 || errno != EINTR { return count }
        }
    }

    private static func failure(_ call: String) -> Transferred {
        errno == EAGAIN ? .wouldBlock : .failed(SystemError(call))
    }
}

/// setsockopt(2).
func setOption<Value: BitwiseCopyable>(
    _ option: Int32, of level: Int32 = SOL_SOCKET, to value: Value, on descriptor: Int32
) -> Int32 {
    var value = value
    return unsafe setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Value>.size))
}
