import Synchronization

/// A client that sends exactly the test's bytes, even malformed ones, and returns exactly the answer's bytes.
/// Make only one call of a client at a time.
public final class RawClient: Sendable {
    private let socket: Socket
    private let buffer = Mutex<[UInt8]>([])

    /// Ports of both ends of a TCP connection, kept because the kernel forgets the far port when the far end has left.
    private let ports: (near: UInt16, far: UInt16)?

    init(socket: Socket) {
        self.socket = socket
        ports = if let near = try? socket.localPort(), let far = try? socket.peerPort() { (near, far) } else { nil }
    }

    /// Connects to 127.0.0.1.
    /// - Parameter receiveBuffer: limit of bytes in the kernel's receive buffer (`SO_RCVBUF`); small for a slow reader.
    public static func connect(port: UInt16, receiveBuffer: Int32? = nil) async throws -> RawClient {
        try await offPool {
            RawClient(
                socket: try Socket.connect(port: port, receiveBuffer: receiveBuffer, deadline: .after(.seconds(10))))
        }
    }

    /// Connects to a Unix socket.
    public static func connect(unix path: String) async throws -> RawClient {
        try await offPool { RawClient(socket: try Socket.connect(unix: path, deadline: .after(.seconds(10)))) }
    }

    /// Connects and sends at once, because a server may end a connection that stays silent.
    public static func connect(
        port: UInt16, sending request: String, within limit: Duration = .seconds(20)
    ) async throws -> RawClient {
        try await offPool {
            let socket = try Socket.connect(port: port, deadline: .after(.seconds(10)))
            try socket.write(Array(request.utf8), deadline: .after(limit))
            return RawClient(socket: socket)
        }
    }

    /// Connects, sends, and reads one response.
    public static func exchange(
        port: UInt16, _ request: String, method: String = "GET", within limit: Duration = .seconds(20)
    ) async throws -> RawResponse {
        let client = try await connect(port: port, sending: request, within: limit)
        return try await client.response(to: method, within: limit)
    }

    public func send(_ text: String, within limit: Duration = .seconds(20)) async throws {
        try await send(Array(text.utf8), within: limit)
    }

    public func send(_ bytes: [UInt8], within limit: Duration = .seconds(20)) async throws {
        try await offPool { [socket] in try socket.write(bytes, deadline: .after(limit)) }
    }

    /// Sends the same bytes several times, all within `limit`.
    public func send(_ bytes: [UInt8], times: Int, within limit: Duration) async throws {
        try await offPool { [socket] in
            let deadline = Deadline.after(limit)
            for _ in 0..<times { try socket.write(bytes, deadline: deadline) }
        }
    }

    /// Reads one response strictly, final or interim (see `RawResponse`).
    /// - Parameter method: method of the request. A response to HEAD has no body.
    public func response(to method: String = "GET", within limit: Duration = .seconds(20)) async throws -> RawResponse {
        try await offPool { [self] in
            let deadline = Deadline.after(limit)
            var message = MessageReader(socket: socket, buffered: buffer.withLock { $0 }, deadline: deadline)
            defer { buffer.withLock { $0 = message.buffered } }
            let response = try RawResponse(from: &message, method: method)
            Evidence.answered(response)
            return response
        }
    }

    /// Reads up to `mark`, which is included.
    public func read(until mark: String, within limit: Duration = .seconds(20)) async throws -> String {
        try await offPool { [self] in
            var message = MessageReader(
                socket: socket, buffered: buffer.withLock { $0 }, deadline: .after(limit))
            defer { buffer.withLock { $0 = message.buffered } }
            return String(decoding: try message.take(through: Array(mark.utf8)), as: UTF8.self)
        }
    }

    /// Reads exactly `count` bytes.
    public func read(count: Int, within limit: Duration = .seconds(20)) async throws -> [UInt8] {
        try await offPool { [self] in
            var message = MessageReader(
                socket: socket, buffered: buffer.withLock { $0 }, deadline: .after(limit))
            defer { buffer.withLock { $0 = message.buffered } }
            return try message.take(count: count)
        }
    }

    /// Reads until the other side ends the stream. A reset counts as an end.
    public func readToEnd(within limit: Duration = .seconds(20)) async throws -> [UInt8] {
        try await readWithEnd(within: limit).bytes
    }

    /// Reads until the other side ends or resets the stream.
    public func readWithEnd(
        within limit: Duration = .seconds(20)
    ) async throws -> (bytes: [UInt8], isReset: Bool) {
        try await offPool { [self] in
            let deadline = Deadline.after(limit)
            var bytes = buffer.withLock { held in
                defer { held = [] }
                return held
            }
            while true {
                do {
                    let piece = try socket.read(deadline: deadline)
                    if piece.isEmpty { return (bytes, false) }
                    bytes.append(contentsOf: piece)
                } catch Socket.Failure.timedOut {
                    throw TestFailure("the stream did not end in \(limit); so far: \(shown(bytes))")
                } catch { return (bytes, true) }
            }
        }
    }

    /// Reads and counts bytes to the end of the stream, and keeps none.
    public func countToEnd(within limit: Duration = .seconds(120)) async throws -> Int {
        try await offPool { [self] in
            let deadline = Deadline.after(limit)
            var piece = [UInt8](repeating: 0, count: 256 * 1024)
            var total = buffer.withLock { $0.count }
            while true {
                let count = try socket.read(into: &piece, deadline: deadline)
                if count == 0 { return total }
                total += count
            }
        }
    }

    /// Shuts down our side. Reading is still possible.
    public func finishSending() { socket.finishSending() }

    /// Closes in an orderly way.
    public func close() { socket.shut() }

    /// The kernel's view of the connection.
    func connection() throws -> TCPConnection {
        guard let ports else { throw TestFailure("no TCP connection") }
        return try TCPConnection(port: ports.near, farPort: ports.far)
    }

    /// Closes with a reset once the last reference is gone.
    public func resetOnClose() { socket.resetOnClose() }
}

/// Waits until a port of 127.0.0.1 refuses connections.
public func refusesConnections(_ port: UInt16) async throws {
    try await eventually("no listener") {
        guard let another = try? await RawClient.connect(port: port) else { return true }
        another.close()
        return false
    }
}

/// A response as received, read by the strict grammar of RFC 9112. Anything else throws, so every `RawResponse` was
/// well-formed.
public struct RawResponse: Sendable {
    public var version: String
    public var status: Int
    public var reason: String
    public var fields: [Field]
    public var body: [UInt8]
    public var trailers: [Field]
    /// Whether the body ended with the connection, so that it may be incomplete.
    public var endedByClose: Bool

    public var text: String { String(decoding: body, as: UTF8.self) }

    /// The value of a field: `nil` if absent, values joined by `, ` if repeated.
    public func field(_ name: String) -> String? { fields.value(name) }

    init(from message: inout MessageReader, method: String) throws {
        let line = try message.line()
        let parts = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "HTTP/1.1" || parts[0] == "HTTP/1.0", parts[1].count == 3,
            let status = Int(parts[1]), status >= 100
        else { throw TestFailure("not a status line: \(line)") }
        version = String(parts[0])
        self.status = status
        reason = String(parts[2])
        fields = try message.fields()
        body = []
        trailers = []
        endedByClose = false
        if method == "HEAD" || status < 200 || status == 204 || status == 304 { return }
        if method == "CONNECT", status < 300 { return }
        switch try Framing(fields) {
        case .none:
            body = try message.takeToEnd()
            endedByClose = true
        case .length(let count): body = try message.take(count: count)
        case .chunked: (body, trailers) = try message.chunked()
        }
    }
}
