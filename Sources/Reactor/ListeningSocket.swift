import CLinux
import Glibc

/// A bound, listening socket. Opened anywhere, then watched on one loop.
public struct ListeningSocket: Sendable {
    let descriptor: Int32
    /// Where it listens, with the port the kernel chose.
    public let address: SocketAddress

    /// Binds and listens.
    ///
    /// - Parameter sharesPort: several loops listen on one address (SO_REUSEPORT, socket(7)).
    /// - Throws: `SystemError` of socket, bind or listen.
    public static func open(_ address: SocketAddress, sharesPort: Bool) throws(SystemError) -> ListeningSocket {
        let descriptor = try check("socket", socket(address.family, heimdallr_stream_flags, 0))
        do throws(SystemError) {
            if address.family != AF_UNIX {
                try enable(SO_REUSEADDR, on: descriptor)
                if sharesPort { try enable(SO_REUSEPORT, on: descriptor) }
            }
            let bound = try unsafe address.withKernelForm { unsafe bind(descriptor, $0, $1) }
            try check("bind", bound)
            try check("listen", listen(descriptor, 4096))
            return ListeningSocket(descriptor: descriptor, address: boundAddress(descriptor) ?? address)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }

    /// For one that never was watched.
    public func close() { Glibc.close(descriptor) }

    private static func enable(_ option: Int32, on descriptor: Int32) throws(SystemError) {
        var one: Int32 = 1
        try check(
            "setsockopt",
            unsafe setsockopt(descriptor, SOL_SOCKET, option, &one, socklen_t(MemoryLayout<Int32>.size)))
    }

    private static func boundAddress(_ descriptor: Int32) -> SocketAddress? {
        var storage = sockaddr_storage()
        return unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
                guard unsafe getsockname(descriptor, pointer, &length) == 0 else { return nil }
                return unsafe SocketAddress(UnsafePointer(pointer))
            }
        }
    }
}

/// Accepts from a listening socket on one loop; loop's thread only.
public final class Acceptor: ReadinessHandler {
    /// How many are accepted before other events get their turn.
    private static let batch = 64

    private let socket: ListeningSocket
    private let loop: EventLoop
    private let accepted: (StreamSocket) -> Void
    private let failed: (SystemError) -> Void
    private var retry: LoopTimer?
    private var isPaused = false
    private var isClosed = false

    /// Starts accepting. `failed` is told when the kernel refuses (out of descriptors, say): accepting goes on 100 ms
    /// later.
    public init(
        _ socket: ListeningSocket, on loop: EventLoop, accepted: @escaping (StreamSocket) -> Void,
        failed: @escaping (SystemError) -> Void
    ) throws(SystemError) {
        self.socket = socket
        self.loop = loop
        self.accepted = accepted
        self.failed = failed
        retry = LoopTimer(on: loop) { [unowned self] in acceptAll() }
        try loop.register(socket.descriptor, handler: self)
    }

    deinit { if !isClosed { Glibc.close(socket.descriptor) } }

    /// Leaves new connections in the kernel's queue.
    public func pause() { isPaused = true }

    public func resume() {
        guard isPaused else { return }
        isPaused = false
        retry?.schedule(at: loop.now)
    }

    public func close() {
        guard !isClosed else { return }
        isClosed = true
        retry?.cancel()
        loop.unregister(socket.descriptor)
        Glibc.close(socket.descriptor)
    }

    public func ready(_ readiness: Readiness) { acceptAll() }

    private func acceptAll() {
        for _ in 0..<Self.batch {
            guard !isPaused, !isClosed else { return }
            let descriptor = accept4(socket.descriptor, nil, nil, heimdallr_accept_flags)
            guard descriptor >= 0 else {
                switch errno {
                case EAGAIN: return
                // The peer was gone before we came (accept(2)).
                case EINTR, ECONNABORTED, EPROTO, ENETDOWN, EHOSTDOWN, ENETUNREACH, EHOSTUNREACH: continue
                default:
                    failed(SystemError("accept4"))
                    retry?.schedule(after: .milliseconds(100))
                    return
                }
            }
            if socket.address.family != AF_UNIX {
                var one: Int32 = 1
                _ = unsafe setsockopt(
                    descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
            }
            accepted(StreamSocket(descriptor: descriptor, loop: loop))
        }
        retry?.schedule(at: loop.now)
    }
}
