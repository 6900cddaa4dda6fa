import Foundation

/// Both ends of a TCP connection on loopback, as the kernel shows them: proc_pid_net_tcp(5). A test sees by them how far
/// the other side has come.
struct TCPConnection {
    /// One end.
    struct End {
        var state: UInt8
        /// Bytes that the other end's kernel has not acknowledged. An end of the stream counts as one.
        var unsent: Int
        /// Bytes that arrived and that the program has not read. An end of the stream counts as one.
        var unread: Int
        /// Whether a program has it open: it was accepted, and it was not closed.
        var isOpen: Bool
    }

    /// `nil` after a reset.
    let near: End?
    /// `nil` when the kernel keeps nothing of it any more.
    let far: End?

    /// - Parameters:
    ///   - port: of the end that is asked about.
    ///   - farPort: of the other end.
    init(port: UInt16, farPort: UInt16) throws {
        let table = try Self.table()
        near = Self.rest(of: "\(Self.address(port)) \(Self.address(farPort))", in: table).first.map(End.init)
        far = Self.rest(of: "\(Self.address(farPort)) \(Self.address(port))", in: table).first.map(End.init)
    }

    /// Number of connections that wait for an answer from a port: `SYN_SENT`.
    static func dials(to port: UInt16) throws -> Int { rest(of: "\(address(port)) 02", in: try table()).count }

    /// Number of bytes from a port that arrived and that no program has read.
    static func unread(from port: UInt16) throws -> Int {
        rest(of: address(port), in: try table()).filter { $0.first?.contains(":") == false }.reduce(0) {
            $0 + End($1).unread
        }
    }

    /// As the table writes it.
    private static func address(_ port: UInt16) -> String {
        let digits = String(port, radix: 16, uppercase: true)
        return "0100007F:" + String(repeating: "0", count: 4 - digits.count) + digits
    }

    /// Columns behind each occurrence of some columns.
    private static func rest(of columns: String, in table: Data) -> [[Substring]] {
        let key = Data(" \(columns) ".utf8)
        var found: [[Substring]] = []
        var rest = table[...]
        while let range = rest.range(of: key) {
            rest = rest[range.upperBound...]
            found.append(String(decoding: rest.prefix { $0 != 0x0A }, as: UTF8.self).split(separator: " "))
        }
        return found
    }

    /// All of it: the kernel gives it in pieces, and calls its size 0.
    private static func table() throws -> Data {
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/thread-self/net/tcp"))
        defer { try? file.close() }
        return try file.readToEnd() ?? Data()
    }
}

extension TCPConnection.End {
    /// - Parameter columns: those behind the two addresses.
    fileprivate init(_ columns: [Substring]) {
        let queues = columns.count > 1 ? columns[1].split(separator: ":").map { Int($0, radix: 16) ?? 0 } : []
        state = columns.first.flatMap { UInt8($0, radix: 16) } ?? 0
        unsent = queues.first ?? 0
        unread = queues.last ?? 0
        isOpen = columns.count > 6 && columns[6] != "0"
    }
}

/// Number of bytes from a TCP port that arrived and that no program has read.
public func unreadBytes(from port: UInt16) throws -> Int { try TCPConnection.unread(from: port) }

extension RawClient {
    /// Waits until the other side's kernel has all bytes sent so far, and the end if one was sent; the program may not have
    /// read them.
    public func isDelivered() async throws {
        try await eventually("the other side's kernel has it all") {
            let connection = try self.connection()
            return connection.near?.unsent == 0 && connection.far != nil
        }
    }

    /// Waits until the other side has accepted the connection and has read all bytes sent so far, and the end if one was sent.
    public func isRead() async throws {
        try await eventually("the other side has read it all") {
            let connection = try self.connection()
            guard let near = connection.near, let far = connection.far else { return false }
            return near.unsent == 0 && far.unread == 0 && far.isOpen
        }
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
        _ = try await settled("no bytes move") {
            let near = try self.connection().near
            return [near?.unsent ?? 0, near?.unread ?? 0]
        }
    }
}
