import CLinux
import Glibc

/// The service manager's notification socket. sd_notify(3).
public struct NotifySocket: Sendable {
    private let path: String

    /// - Parameter path: path of a Unix socket, or `@` and an abstract name (unix(7)); anything else results in `nil`.
    public init?(_ path: String) {
        guard path.hasPrefix("/") || path.hasPrefix("@"), path.utf8.count > 1 else { return nil }
        self.path = path
    }

    /// Current time of the clock that these messages use: CLOCK_MONOTONIC of clock_gettime(2).
    public static var monotonicMicroseconds: Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// Sends one datagram without waiting. If the manager does not listen, the datagram is lost.
    /// - Returns: whether the datagram was sent.
    @discardableResult
    public func send(_ text: String) -> Bool {
        // `heimdallr_accept_flags` has no socket type, so SOCK_DGRAM can be added.
        let descriptor = socket(AF_UNIX, heimdallr_accept_flags | Int32(SOCK_DGRAM.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        if name[0] == UInt8(ascii: "@") { name[0] = 0 }
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard name.count < room || name.count == room && name[0] == 0 else { return false }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: name) }
        // An abstract name ends with the address's length, not with a NUL byte.
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let bytes = Array(text.utf8)
        return unsafe withKernelAddress(&address) { address, _ in
            unsafe sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), address, length) == bytes.count
        }
    }
}
