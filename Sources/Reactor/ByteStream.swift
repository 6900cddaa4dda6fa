import CLinux
import Glibc

public enum Transferred: Sendable, Equatable {
    case bytes(Int)
    /// Nothing was transferred. The handler is called when another try may succeed.
    case wouldBlock
    /// The peer has ended its side (reads only).
    case endOfStream
    case failed(SystemError)
}

/// The process at the other end of a Unix socket at the time of connecting (SO_PEERCRED, unix(7)).
public struct PeerCredentials: Sendable, Equatable {
    public let user: UInt32
    public let group: UInt32
    public let process: Int32

    public init(user: UInt32, group: UInt32, process: Int32) {
        self.user = user
        self.group = group
        self.process = process
    }

    /// Asks the kernel; `nil` for a socket that is no Unix socket.
    public init?(of descriptor: Int32) {
        var peer = heimdallr_peer()
        var length = socklen_t(MemoryLayout<heimdallr_peer>.size)
        // For any other socket, the kernel answers with uid and gid -1 and pid 0.
        guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0, peer.uid != .max else {
            return nil
        }
        self.init(user: peer.uid, group: peer.gid, process: peer.pid)
    }
}

/// A non-blocking stream of bytes in both directions: a socket, or a protocol on another stream. Edge-triggered, as in
/// epoll(7). The next call of the handler is certain only after `wouldBlock`, or after a read or a write of fewer bytes
/// than were asked for. Loop's thread only.
public protocol ByteStream: AnyObject {
    /// Reports readiness to `handler` until `close`. A second call replaces the handler.
    func register(_ handler: any ReadinessHandler) throws(SystemError)

    /// Reads at most `limit` bytes and appends them to `buffer`.
    func read(into buffer: inout ByteBuffer, limit: Int) -> Transferred

    /// Writes from the front of `buffer` and removes the bytes written.
    func write(from buffer: inout ByteBuffer) -> Transferred

    /// Writes `buffer` and then `body`. Returns the number of bytes written from both, and removes those of `buffer`.
    func write(from buffer: inout ByteBuffer, then body: Span<UInt8>) -> Transferred

    /// Number of written bytes that the other side has not acknowledged yet.
    var unacknowledged: Int { get }

    /// Ends our side. Bytes written so far still go out.
    func shutdownWriting()

    /// Makes `close` cut the connection instead of ending it in order, so that a cut message can't look complete.
    func resetOnClose()

    /// Makes the end of our side show a cut, as far as the stream can: over TLS, it ends without close_notify.
    func endAsCut()

    func close()

    /// Process at the other end of a Unix socket, or user of an enclosed program; otherwise `nil`.
    var peerCredentials: PeerCredentials? { get }

    /// Address of the other end; `nil` for a Unix socket and after the connection's end.
    var peerAddress: SocketAddress? { get }

    /// Address of our end; `nil` for a Unix socket and after the connection's end.
    var localAddress: SocketAddress? { get }

    /// Address that the program dialled, if the kernel redirected the connection or the program is enclosed; otherwise
    /// `nil`.
    var originalDestination: SocketAddress? { get }

    var isSecure: Bool { get }
}

extension ByteStream {
    public func endAsCut() {}
    public var originalDestination: SocketAddress? { nil }
    public var isSecure: Bool { false }
}
