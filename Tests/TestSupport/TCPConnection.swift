import Glibc

/// The kernel's state of both ends of a TCP connection on loopback: sock_diag(7). Shows a test how far the other side
/// has come. A query takes some microseconds; reading /proc/net/tcp took milliseconds.
struct TCPConnection {
    /// One end.
    struct End {
        /// Number of bytes that the other end's kernel has not acknowledged. The end of the stream counts as a byte.
        var unsent: Int
        /// Number of received bytes that the program has not read. The end of the stream counts as a byte.
        var unread: Int
        /// Whether a program has this end open: accepted, and not closed.
        var isOpen: Bool
    }

    /// `nil` after a reset.
    let near: End?
    /// `nil` when the kernel has forgotten this end.
    let far: End?

    /// - Parameters:
    ///   - port: port of the near end.
    ///   - farPort: port of the far end.
    init(port: UInt16, farPort: UInt16) throws {
        near = try Self.ends(port, farPort).first
        far = try Self.ends(farPort, port).first
    }

    /// Number of connection attempts to a port that wait for an answer.
    static func dials(to port: UInt16) throws -> Int { try ends(nil, port, states: 1 << 2).count }

    /// Number of received bytes from a port that no program has read.
    static func unread(from port: UInt16) throws -> Int { try ends(nil, port).reduce(0) { $0 + $1.unread } }

    /// Ends with these ports.
    /// - Parameters:
    ///   - local: `nil`: any.
    ///   - states: one bit for each; `TCP_SYN_SENT` is 2.
    private static func ends(_ local: UInt16?, _ remote: UInt16, states: UInt32 = .max) throws -> [End] {
        // SOCK_DIAG_BY_FAMILY with NLM_F_REQUEST, and with NLM_F_DUMP for all matching sockets.
        let header: [UInt32] = [72, 20 | (local == nil ? 0x301 : 1) << 16, 0, 0]
        let loopback: [UInt32] = [UInt32(0x7F00_0001).bigEndian, 0, 0, 0]
        let ports = UInt32((local ?? 0).bigEndian) | UInt32(remote.bigEndian) << 16
        // AF_INET and IPPROTO_TCP; no interface, and no cookie (INET_DIAG_NOCOOKIE).
        let request = header + [0x0602, states, ports] + loopback + loopback + [0, .max, .max]
        let diagnosis = socket(AF_NETLINK, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 4)
        guard diagnosis >= 0 else { throw TestFailure("socket(NETLINK_SOCK_DIAG): \(errno)") }
        defer { close(diagnosis) }
        guard unsafe request.withUnsafeBytes({ unsafe send(diagnosis, $0.baseAddress, $0.count, 0) }) == 72 else {
            throw TestFailure("send(NETLINK_SOCK_DIAG): \(errno)")
        }
        var found: [End] = []
        while true {
            var words = [UInt32](repeating: 0, count: 16 * 1024)
            let size = unsafe words.withUnsafeMutableBytes { unsafe recv(diagnosis, $0.baseAddress, $0.count, 0) }
            guard size > 0 else { throw TestFailure("recv(NETLINK_SOCK_DIAG): \(errno)") }
            words.removeSubrange((size / 4)...)
            var rest = words[...]
            while rest.count >= 4 {
                let message = rest.prefix(Int(rest[rest.startIndex] + 3) / 4)
                guard message.count >= 4 else { throw TestFailure("a message of no length") }
                rest = rest.dropFirst(message.count)
                // Other types: NLMSG_DONE, and NLMSG_ERROR, which is ENOENT for a missing connection.
                guard message[message.startIndex + 1] & 0xFFFF == 20 else { return found }
                if let end = End(message.dropFirst(4)) { found.append(end) }
                if local != nil { return found }
            }
        }
    }
}

extension TCPConnection.End {
    /// Reads `struct inet_diag_msg`. `nil` for a listener, which the kernel may return in place of a connection.
    fileprivate init?(_ words: ArraySlice<UInt32>) {
        guard words.count >= 18, let first = words.first, first >> 8 & 0xFF != 10 else { return nil }
        let (queues, inode) = (words.startIndex + 14, words.startIndex + 17)
        unread = Int(words[queues])
        unsent = Int(words[queues + 1])
        isOpen = words[inode] != 0
    }
}

/// Number of received bytes from a TCP port that no program has read.
public func unreadBytes(from port: UInt16) throws -> Int { try TCPConnection.unread(from: port) }

extension RawClient {
    /// Waits until the other side's kernel has all bytes sent so far, and the end if it was sent. The program may not
    /// have read them yet.
    public func isDelivered() async throws {
        try await eventually("the other side's kernel has it all") {
            let connection = try self.connection()
            return connection.near?.unsent == 0 && connection.far != nil
        }
    }

    /// Waits until the other side has accepted the connection and read all bytes sent so far, the end included.
    public func isRead() async throws {
        try await eventually("the other side has read it all") {
            let connection = try self.connection()
            guard let near = connection.near, let far = connection.far else { return false }
            return near.unsent == 0 && far.unread == 0 && far.isOpen
        }
    }

    /// Waits until so many bytes have arrived at the other side, which reads none. A busy kernel may deliver later than
    /// send(2) returns.
    public func hasArrived(_ count: Int) async throws {
        try await eventually("\(count) bytes have arrived") { try self.connection().far?.unread == count }
    }

    /// Waits until the other side has closed the connection. Its last bytes may still be unread.
    public func isLeft() async throws {
        try await eventually("the other side has closed it") {
            let connection = try self.connection()
            return connection.near == nil || connection.far?.isOpen != true
        }
    }

    /// Waits until no bytes move in either direction.
    public func isStuck() async throws {
        // A busy machine gives the other side no time for a while.
        _ = try await settled("no bytes move", for: .milliseconds(500)) {
            let near = try self.connection().near
            return [near?.unsent ?? 0, near?.unread ?? 0]
        }
    }
}
