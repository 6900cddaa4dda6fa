// Every pointer here lives for the one call it is passed to.
import CLinux
import Configuration
import Glibc
import Reactor

/// A blocking connection to a Unix socket or a port, closed in `deinit`.
struct SocketConnection: ~Copyable {
    private let descriptor: Int32

    /// - Parameters:
    ///   - address: its host is a numeric address or a name. Loopback replaces `0.0.0.0` and `::`.
    ///   - timeout: maximum time of the connection attempt, and of each read and write, in whole seconds.
    /// - Throws: the `errno` of socket(2) or connect(2); `EHOSTUNREACH` for an unknown name.
    init(to address: ListenAddress, timeout: Int) throws(SystemCallError) {
        var fault = SystemCallError(number: EHOSTUNREACH)
        for address in Self.addresses(of: address) {
            do throws(SystemCallError) {
                descriptor = try Self.connect(to: address, timeout)
                return
            } catch { fault = error }
        }
        throw fault
    }

    /// Whether a process listens at this address. Its queue may be full.
    static func isAccepted(at address: ListenAddress) -> Bool {
        do throws(SystemCallError) { _ = try SocketConnection(to: address, timeout: 1) } catch {
            return error.number == ETIMEDOUT
        }
        return true
    }

    private static func addresses(of address: ListenAddress) -> [SocketAddress] {
        switch address {
        case .unix(let path, _): return [SocketAddress(.unix(path: path))]
        case .tcp(let host, let port):
            let host = ListenAddress.reachable(host)
            return (try? SocketAddress.lookUp(host, service: "\(port)", flags: AI_NUMERICSERV)) ?? []
        }
    }

    private static func connect(to address: SocketAddress, _ timeout: Int) throws(SystemCallError) -> Int32 {
        let descriptor = socket(address.family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SystemCallError(number: errno) }
        var limit = timeval(tv_sec: timeout, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            _ = unsafe setsockopt(descriptor, SOL_SOCKET, option, &limit, size)
        }
        let fault: Int32
        do throws(SystemError) {
            fault = try unsafe address.withKernelForm { unsafe Glibc.connect(descriptor, $0, $1) == 0 ? 0 : errno }
        } catch { fault = error.code }
        if fault == 0 { return descriptor }
        close(descriptor)
        // After the timeout of SO_SNDTIMEO, connect(2) sets EINPROGRESS.
        throw SystemCallError(number: fault == EINPROGRESS ? ETIMEDOUT : fault)
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
    borrowing func peer() -> UInt32? { PeerCredentials(of: descriptor)?.user }

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
