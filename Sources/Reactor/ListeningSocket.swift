import CLinux
import Glibc

/// A listening socket. It can be opened on any thread, and is then used on one loop.
public struct ListeningSocket: Sendable {
    let descriptor: Int32
    /// The bound address, with the port that the kernel chose.
    public let address: SocketAddress
    /// The socket file, which is removed when this socket closes.
    var file: UnixSocketFile?
    /// Whether other loops accept from the same socket.
    var isShared = false
    /// Whether another process passed this socket. That process keeps the socket and accepts after our end, so `finish`
    /// leaves the connections in the queue.
    public internal(set) var isPassed = false
    /// The user of the enclosed programs that dial; `nil` for a socket of our own network namespace.
    var enclosed: PeerCredentials?

    /// Binds and listens.
    /// - Parameters:
    ///   - sharesPort: lets several sockets listen on one address (SO_REUSEPORT, socket(7)).
    ///   - isV6Only: whether `[::]` leaves IPv4 to other sockets (IPV6_V6ONLY, ipv6(7)).
    ///   - backlog: limit of connections that wait to be accepted (listen(2)).
    /// - Throws: `SystemError` of socket, bind or listen.
    public static func open(
        _ address: SocketAddress, sharesPort: Bool, isV6Only: Bool = false, backlog: Int32 = 4096
    ) throws(SystemError) -> ListeningSocket {
        let descriptor = try check("socket", socket(address.family, heimdallr_stream_flags, 0))
        do throws(SystemError) {
            if address.family != AF_UNIX {
                try check("setsockopt", setOption(SO_REUSEADDR, to: 1 as Int32, on: descriptor))
                if isV6Only {
                    try check(
                        "setsockopt", setOption(IPV6_V6ONLY, of: Int32(IPPROTO_IPV6), to: 1 as Int32, on: descriptor))
                }
                if sharesPort { try check("setsockopt", setOption(SO_REUSEPORT, to: 1 as Int32, on: descriptor)) }
            }
            let bound = try unsafe address.withKernelForm { unsafe bind(descriptor, $0, $1) }
            try check("bind", bound)
            try check("listen", listen(descriptor, backlog))
            return ListeningSocket(descriptor: descriptor, address: SocketAddress(own: descriptor) ?? address)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }

    /// Closes a socket that no loop watches, and removes its file. Never blocks: if another process locks the file's
    /// folder, a thread waits for the lock.
    public func close() {
        if let file, !file.removeAtOnce(), file.removeLater(closing: descriptor) { return }
        Glibc.close(descriptor)
    }

    /// Duplicates the socket for another loop. For Unix sockets and passed sockets, which can't share an address.
    public func duplicate() throws(SystemError) -> ListeningSocket {
        let copy = try check("fcntl", fcntl(descriptor, F_DUPFD_CLOEXEC, 0))
        var socket = ListeningSocket(descriptor: copy, address: address)
        socket.isShared = true
        socket.isPassed = isPassed
        socket.enclosed = enclosed
        return socket
    }

    /// Throws the error that `open` would throw, except for a port or path in use. Does not listen, and makes no file.
    public static func probe(_ address: SocketAddress) throws(SystemError) {
        if case .unix(let path) = address.kind { return try UnixSocketFile.probe(path) }
        let descriptor = try check("socket", socket(address.family, heimdallr_stream_flags, 0))
        defer { Glibc.close(descriptor) }
        try check("setsockopt", setOption(SO_REUSEADDR, to: 1 as Int32, on: descriptor))
        let bound = try unsafe address.withKernelForm { unsafe bind(descriptor, $0, $1) }
        guard bound == 0 || errno == EADDRINUSE else { throw SystemError("bind") }
    }

    /// Binds and listens on a Unix socket. Replaces a socket file without a listener. `close` removes the file.
    /// - Parameter mode: permissions of the file, which decide who may connect.
    /// - Throws: `SystemError`: EADDRINUSE for a socket with a listener, EEXIST for a file of another kind.
    public static func open(path: String, mode: UInt16) throws(SystemError) -> ListeningSocket {
        let address = SocketAddress(.unix(path: path))
        let descriptor = try check("socket", socket(AF_UNIX, heimdallr_stream_flags, 0))
        let lock = FolderLock(of: path, patiently: true)
        defer { _ = lock }
        do throws(SystemError) {
            try UnixSocketFile.bind(descriptor, address, path: path, mode: mode)
            let file = UnixSocketFile(at: path)
            do throws(SystemError) {
                try check("listen", listen(descriptor, 4096))
            } catch {
                file?.unlinkOwn()
                throw error
            }
            return ListeningSocket(descriptor: descriptor, address: address, file: file)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }
}

/// Accepts connections from a listening socket on one loop. Loop's thread only.
public final class Acceptor: ReadinessHandler {
    /// Limit of connections accepted in one turn of the loop.
    private static let batch = 64
    /// The same limit for a socket shared by several loops, so that each loop gets connections.
    private static let sharedBatch = 2
    /// Limit of connections accepted from the queue of a closing socket: above every backlog used here.
    private static let lastBatch = 8192

    private let socket: ListeningSocket
    private let loop: EventLoop
    private let accepted: (StreamSocket) -> Void
    private let failed: (SystemError) -> Void
    private var retry: LoopTimer?
    private var isPaused = false
    private var isClosed = false

    /// Starts accepting. Calls `failed` when accept(2) fails, for example without free descriptors, and tries again
    /// 100 ms later.
    public init(
        _ socket: ListeningSocket, on loop: EventLoop, accepted: @escaping (StreamSocket) -> Void,
        failed: @escaping (SystemError) -> Void
    ) throws(SystemError) {
        self.socket = socket
        self.loop = loop
        self.accepted = accepted
        self.failed = failed
        retry = LoopTimer(on: loop) { [unowned self] in acceptAll() }
        TCPPeer(socket.descriptor).probe()
        try loop.register(socket.descriptor, handler: self)
    }

    deinit { if !isClosed { socket.close() } }

    /// Whether a connection waits in the kernel's queue now. poll(2).
    public var isAwaited: Bool {
        guard !isClosed else { return false }
        var query = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&query, 1, 0) > 0
    }

    /// Leaves new connections in the kernel's queue.
    public func pause() { isPaused = true }

    public func resume() {
        guard isPaused else { return }
        isPaused = false
        retry?.schedule(at: loop.now)
    }

    /// Accepts the connections in the kernel's queue, which closing would reset, and closes the socket. Accepts none
    /// while paused, nor from a passed socket, whose other owner accepts them.
    public func finish() {
        guard !isClosed else { return }
        if !socket.isPassed, !isPaused {
            for _ in 0..<Self.lastBatch { guard acceptOne() == .taken else { break } }
        }
        close()
    }

    public func close() {
        guard !isClosed else { return }
        isClosed = true
        retry?.cancel()
        loop.unregister(socket.descriptor)
        socket.close()
    }

    public func ready(_ readiness: Readiness) { acceptAll() }

    private func acceptAll() {
        if socket.isPassed, !isClosed { PassedSocket.restoreNonBlocking(socket.descriptor) }
        for _ in 0..<(socket.isShared ? Self.sharedBatch : Self.batch) {
            guard !isPaused, !isClosed else { return }
            switch acceptOne() {
            case .taken: continue
            case .nobody: return
            case .failed(let error):
                failed(error)
                retry?.schedule(after: .milliseconds(100))
                return
            }
        }
        retry?.schedule(at: loop.now)
    }

    private enum Step: Equatable {
        case taken
        case nobody
        case failed(SystemError)
    }

    private func acceptOne() -> Step {
        let descriptor = accept4(socket.descriptor, nil, nil, heimdallr_accept_flags)
        guard descriptor >= 0 else {
            switch errno {
            case EAGAIN: return .nobody
            // A signal interrupted the call, or the peer left before the accept (accept(2)).
            case EINTR, ECONNABORTED, EPROTO, ENETDOWN, EHOSTDOWN, ENETUNREACH, EHOSTUNREACH: return .taken
            default: return .failed(SystemError("accept4"))
            }
        }
        if socket.address.family != AF_UNIX {
            _ = setOption(TCP_NODELAY, of: Int32(IPPROTO_TCP), to: 1 as Int32, on: descriptor)
        }
        accepted(StreamSocket(descriptor: descriptor, loop: loop, enclosed: socket.enclosed))
        return .taken
    }
}
