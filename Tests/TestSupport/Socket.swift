import Glibc
import Synchronization

/// A stream socket on loopback with a deadline for every call. Closed when the last reference goes. Any thread may call
/// `shut`, which wakes the waiting threads.
final class Socket: Sendable {
    enum Failure: Error, Equatable { case timedOut, closed, code(Int32) }

    let descriptor: Int32

    private init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { Glibc.close(descriptor) }

    // MARK: Making one

    static let loopback: UInt32 = 0x7f00_0001

    /// Opens a listener; port 0 lets the kernel choose.
    /// - Parameter host: 127.0.0.1, another address of 127.0.0.0/8, or 0 for all of them.
    static func listener(
        backlog: Int32 = 512, host: UInt32 = loopback, port: UInt16 = 0
    ) throws -> (socket: Socket, port: UInt16) {
        let socket = try make(AF_INET)
        try unsafe withAddress(host: host, port: port) { address, length in
            try check(unsafe bind(socket.descriptor, address, length))
        }
        try check(listen(socket.descriptor, backlog))
        return (socket, try socket.localPort())
    }

    static func connect(
        host: UInt32 = loopback, port: UInt16, receiveBuffer: Int32? = nil, deadline: Deadline
    ) throws -> Socket {
        let socket = try make(AF_INET)
        if let receiveBuffer { socket.set(SO_RCVBUF, receiveBuffer) }
        let result = unsafe withAddress(host: host, port: port) { unsafe Glibc.connect(socket.descriptor, $0, $1) }
        try socket.finishConnecting(result, deadline: deadline)
        return socket
    }

    static func connect(unix path: String, deadline: Deadline) throws -> Socket {
        let socket = try make(AF_UNIX)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { throw Failure.code(ENAMETOOLONG) }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        let result = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Glibc.connect(socket.descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try socket.finishConnecting(result, deadline: deadline)
        return socket
    }

    /// Returns the next connection; `nil` when the listener was shut.
    func accept(before deadline: Deadline = .never) throws -> Socket? {
        while true {
            let accepted = Descriptors.make { descriptors in
                let accepted = Glibc.accept(descriptor, nil, nil)
                if accepted >= 0 { descriptors = [accepted] }
                return accepted
            }
            if accepted >= 0 {
                _ = fcntl(accepted, F_SETFL, O_NONBLOCK)
                let socket = Socket(descriptor: accepted)
                socket.setNoDelay()
                return socket
            }
            switch errno {
            case EAGAIN, EINTR, ECONNABORTED: try wait(for: POLLIN, deadline: deadline)
            case EINVAL, EBADF: return nil
            case let code: throw Failure.code(code)
            }
        }
    }

    // MARK: Using it

    /// Returns the bytes that have arrived, at most `limit`; empty at the end of the stream.
    func read(limit: Int = 64 * 1024, deadline: Deadline) throws -> [UInt8] {
        while true {
            var code: Int32 = 0
            var ended = false
            let bytes = unsafe [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
                let received = unsafe recv(descriptor, buffer.baseAddress, limit, 0)
                count = max(received, 0)
                ended = received == 0
                code = received < 0 ? errno : 0
            }
            if !bytes.isEmpty || ended { return bytes }
            try retry(code, POLLIN, deadline)
        }
    }

    /// Reads into `buffer` and returns the number of bytes; 0 at the end of the stream.
    func read(into buffer: inout [UInt8], deadline: Deadline) throws -> Int {
        while true {
            let size = buffer.count
            let received = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, size, 0) }
            if received >= 0 { return received }
            try retry(errno, POLLIN, deadline)
        }
    }

    /// Writes all of `bytes`.
    func write(_ bytes: [UInt8], deadline: Deadline) throws {
        var sent = 0
        while sent < bytes.count {
            let result = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.send(
                    descriptor, buffer.baseAddress?.advanced(by: sent), buffer.count - sent, Int32(MSG_NOSIGNAL))
            }
            if result >= 0 { sent += result } else { try retry(errno, POLLOUT, deadline) }
        }
    }

    func finishSending() { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// Ends both directions, and wakes the waiting threads.
    func shut() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Makes the close send a reset (RST) instead of an orderly end.
    func resetOnClose() {
        var option = linger(l_onoff: 1, l_linger: 0)
        _ = unsafe setsockopt(
            descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    func set(_ option: Int32, _ value: Int32) {
        var value = value
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    func localPort() throws -> UInt16 { try unsafe port { unsafe getsockname(descriptor, $0, $1) } }

    func peerPort() throws -> UInt16 { try unsafe port { unsafe getpeername(descriptor, $0, $1) } }

    private func port(
        _ ask: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) throws -> UInt16 {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        try Socket.check(
            unsafe withUnsafeMutablePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe ask($0, &length) }
            })
        return UInt16(bigEndian: address.sin_port)
    }

    // MARK: Inside

    private static func make(_ family: Int32) throws -> Socket {
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(family, kind, 0)
        try check(descriptor)
        let socket = Socket(descriptor: descriptor)
        if family == AF_INET { socket.setNoDelay() }
        return socket
    }

    private func setNoDelay() {
        var on: Int32 = 1
        _ = unsafe setsockopt(
            descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    private static func withAddress<Result>(
        host: UInt32, port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result
    ) rethrows -> Result {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = host.bigEndian
        return try unsafe withUnsafePointer(to: &address) { pointer in
            try unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try unsafe body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    private func finishConnecting(_ result: Int32, deadline: Deadline) throws {
        if result == 0 { return }
        guard errno == EINPROGRESS || errno == EAGAIN else { throw Failure.code(errno) }
        try wait(for: POLLOUT, deadline: deadline)
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        try Socket.check(unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length))
        if code != 0 { throw Failure.code(code) }
    }

    private func retry(_ code: Int32, _ event: Int32, _ deadline: Deadline) throws {
        switch code {
        case EAGAIN, EINTR: try wait(for: event, deadline: deadline)
        case EPIPE: throw Failure.closed
        case let code: throw Failure.code(code)
        }
    }

    private func wait(for event: Int32, deadline: Deadline) throws {
        var entry = pollfd(fd: descriptor, events: Int16(event), revents: 0)
        let ready = unsafe poll(&entry, 1, deadline.milliseconds)
        if ready == 0, deadline.hasPassed { throw Failure.timedOut }
        if ready < 0, errno != EINTR { throw Failure.code(errno) }
    }

    private static func check(_ result: Int32) throws {
        if result < 0 { throw Failure.code(errno) }
    }
}

/// A TCP port of 127.0.0.1 where connections are neither accepted nor refused: the kernel drops what comes, as a
/// firewall does.
public final class DeafPort: Sendable {
    public let port: UInt16
    private let listener: Socket
    private let fillers: [Socket]

    /// - Parameters:
    ///   - host: 127.0.0.1, another address of 127.0.0.0/8, or 0 for all of them.
    ///   - port: 0 lets the kernel choose.
    /// - Throws: when no socket can be opened.
    public init(host: UInt32 = 0x7f00_0001, port: UInt16 = 0) throws {
        (listener, self.port) = try Socket.listener(backlog: 0, host: host, port: port)
        // The queue holds one connection more than the backlog. Later connections get no answer.
        var fillers: [Socket] = []
        while fillers.count < 16 {
            guard
                let filler = try? Socket.connect(
                    host: max(host, Socket.loopback), port: self.port, deadline: .after(.milliseconds(200)))
            else { break }
            fillers.append(filler)
        }
        self.fillers = fillers
    }

    /// Number of clients that try to connect to the port.
    public var dials: Int { get throws { try TCPConnection.dials(to: port) } }

    /// Waits until a client tries to connect to the port.
    public func isDialled() async throws {
        try await eventually("a client connects") { try TCPConnection.dials(to: self.port) > 0 }
    }
}

/// Time after which a call fails.
struct Deadline: Sendable {
    private var instant: ContinuousClock.Instant?

    static let never = Deadline(instant: nil)
    static func after(_ time: Duration) -> Deadline { Deadline(instant: .now + time) }

    var hasPassed: Bool { instant.map { $0 <= .now } ?? false }

    /// Timeout for `poll`: -1 for none, otherwise rounded up.
    fileprivate var milliseconds: Int32 {
        guard let instant else { return -1 }
        let left = ContinuousClock.now.duration(to: instant) / .milliseconds(1)
        return Int32(max(0, min(left.rounded(.up), 1_000_000)))
    }
}

/// Returns a TCP port of 127.0.0.1 that was free a moment ago, for programs that can't listen on port 0. The port is
/// outside ip_local_port_range (ip(7)), so the kernel gives it to no outgoing connection in between.
public func freePort() throws -> UInt16 {
    for _ in 0..<100 {
        if let (_, port) = try? Socket.listener(port: .random(in: 10_000..<32_000)) { return port }
    }
    return try Socket.listener().port
}

/// A lock for making descriptors and for starting children: no child may start between the call that makes a
/// descriptor and the call that marks the descriptor close-on-exec.
enum Descriptors {
    private static let lock = Mutex<Void>(())

    /// Runs `body`, then marks the descriptors in its argument close-on-exec.
    static func make<Result: Sendable>(_ body: (inout [Int32]) -> Result) -> Result {
        lock.withLock { _ in
            var made: [Int32] = []
            defer {
                for descriptor in made { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
            }
            return body(&made)
        }
    }

    static func whileNoneIsMade<Result: Sendable>(_ body: () -> Result) -> Result { lock.withLock { _ in body() } }
}
