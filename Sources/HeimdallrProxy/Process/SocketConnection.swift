// Every pointer here lives for the one call it is passed to.
import CLinux
import Configuration
import Glibc

/// A blocking connection to a Unix socket or a port, closed in `deinit`.
struct SocketConnection: ~Copyable {
    private let descriptor: Int32

    init(to address: ListenAddress, timeout: Int) throws(SystemCallError) {
        switch address {
        case .tcp(let host, let port): try self.init(host: host, port: port, timeout: timeout)
        case .unix(let path, _): try self.init(path: path, timeout: timeout)
        }
    }

    /// Whether a process listens at this address. Its queue may be full.
    static func isAccepted(at address: ListenAddress) -> Bool {
        do throws(SystemCallError) { _ = try SocketConnection(to: address, timeout: 1) } catch {
            return error.number == ETIMEDOUT
        }
        return true
    }

    /// - Parameter timeout: maximum time of each read and write, in whole seconds.
    /// - Throws: the `errno` of socket(2) or connect(2).
    private init(path: String, timeout: Int) throws(SystemCallError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let fits = unsafe withUnsafeMutableBytes(of: &address.sun_path) { room in
            guard bytes.count < room.count, !bytes.contains(0) else { return false }
            unsafe room.copyBytes(from: bytes)
            return true
        }
        guard fits else { throw SystemCallError(number: ENAMETOOLONG) }
        let number = try Self.open(AF_UNIX, timeout)
        let connected = unsafe withUnsafePointer(to: address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe connect(number, generic, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard connected == 0 else {
            let fault = SystemCallError(number: errno)
            close(number)
            throw fault
        }
        descriptor = number
    }

    /// - Parameters:
    ///   - host: a numeric address or a name. Loopback replaces `0.0.0.0` and `::`.
    ///   - timeout: maximum time of the connection attempt, and of each read and write, in whole seconds.
    /// - Throws: the `errno` of socket(2) or connect(2); `EHOSTUNREACH` for an unknown name.
    private init(host: String, port: UInt16, timeout: Int) throws(SystemCallError) {
        let local = ListenAddress.reachable(host)
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        unsafe hints.ai_flags = AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        guard unsafe getaddrinfo(local, "\(port)", &hints, &list) == 0 else {
            throw SystemCallError(number: EHOSTUNREACH)
        }
        defer { unsafe freeaddrinfo(list) }
        var fault = EHOSTUNREACH
        var next = unsafe list
        while let entry = unsafe next {
            let info = unsafe entry.pointee
            unsafe next = info.ai_next
            let number: Int32
            do throws(SystemCallError) { number = try unsafe Self.open(info.ai_family, timeout) } catch {
                fault = error.number
                continue
            }
            if unsafe connect(number, info.ai_addr, info.ai_addrlen) == 0 {
                descriptor = number
                return
            }
            // After the timeout of SO_SNDTIMEO, connect(2) sets EINPROGRESS.
            fault = errno == EINPROGRESS ? ETIMEDOUT : errno
            close(number)
        }
        throw SystemCallError(number: fault)
    }

    private static func open(_ family: Int32, _ timeout: Int) throws(SystemCallError) -> Int32 {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SystemCallError(number: errno) }
        var limit = timeval(tv_sec: timeout, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            _ = unsafe setsockopt(descriptor, SOL_SOCKET, option, &limit, size)
        }
        return descriptor
    }

    deinit { close(descriptor) }

    /// Returns the descriptor, which the next program of this process inherits. The caller closes it.
    consuming func inherited() -> Int32 {
        let number = descriptor
        discard self
        _ = fcntl(number, F_SETFD, 0)
        return number
    }

    /// Ends our side of the connection: shutdown(2).
    borrowing func endSending() { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// Returns the user of the listening process at the time of listen(2): SO_PEERCRED of unix(7). `nil` if unknown.
    borrowing func peer() -> UInt32? {
        var peer = heimdallr_peer()
        var length = socklen_t(MemoryLayout<heimdallr_peer>.size)
        guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0, peer.uid != .max else {
            return nil
        }
        return peer.uid
    }

    borrowing func send(_ bytes: [UInt8]) -> Bool { OutputDescriptor(number: descriptor).write(bytes) }

    /// Reads until the other side closes, or until at least `limit` bytes have arrived. recv(2).
    /// - Parameter time: maximum time of all reads, checked after each read.
    /// - Returns: `nil` after that time or after an error.
    borrowing func receiveAll(limit: Int, within time: Duration) -> [UInt8]? {
        let end = ContinuousClock.now + time
        var received: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 * 1024)
        while received.count < limit {
            let count = unsafe chunk.withUnsafeMutableBytes { buffer in
                unsafe recv(descriptor, buffer.baseAddress, buffer.count, 0)
            }
            if count > 0 {
                received += chunk[..<count]
                if end < .now { return nil }
            } else if count == 0 {
                return received
            } else if errno != EINTR {
                return nil
            }
        }
        return received
    }
}
