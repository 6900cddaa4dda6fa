import CLinux
import Glibc
public import Reactor
import WireText

/// Answers the look-ups of enclosed programs, by UDP and TCP. RFC 1035, section 4.2; RFC 7766.
public final class NameServer: Sendable {
    private let state: LoopBound<Listening>

    /// Begins to answer on copies of the sockets.
    /// - Throws: `SystemError` if the kernel refuses a descriptor.
    public init(_ sockets: Enclosure.Sockets, _ names: EnclosedNames, on loop: EventLoop) async throws {
        state = try await loop.run { LoopBound(try Listening(sockets, names, on: loop), on: loop) }
    }

    /// Closes the sockets.
    public func stop() { state.loop.execute { [state] in state.value.stop() } }
}

/// The sockets of a name server. Loop's thread only.
private final class Listening {
    private var acceptors: [Acceptor] = []
    private var datagrams: [Datagrams] = []
    private var connections: [ObjectIdentifier: NameConnection] = [:]
    private let names: EnclosedNames
    private let loop: EventLoop

    /// Limit of TCP connections. A further one is closed.
    private static let mostConnections = 64

    init(_ sockets: Enclosure.Sockets, _ names: EnclosedNames, on loop: EventLoop) throws {
        self.names = names
        self.loop = loop
        datagrams = try sockets.datagrams.map { try Datagrams(copying: $0, names, on: loop) }
        acceptors = try sockets.names.map { socket in
            try Acceptor(
                socket.listeningSocket(), on: loop, accepted: { [unowned self] in accept($0) }, failed: { _ in })
        }
    }

    func stop() {
        for acceptor in acceptors { acceptor.close() }
        for one in datagrams { one.stop() }
        for connection in Array(connections.values) { connection.end() }
    }

    private func accept(_ stream: StreamSocket) {
        guard connections.count < Self.mostConnections else { return stream.close() }
        let connection = NameConnection(stream, names, on: loop)
        connections[ObjectIdentifier(connection)] = connection
        connection.begin { [unowned self] in connections[ObjectIdentifier($0)] = nil }
    }
}

/// A UDP socket.
private final class Datagrams: ReadinessHandler {
    private let socket: Int32
    private let names: EnclosedNames
    private let loop: EventLoop
    private var retry: LoopTimer?

    /// Limit of queries answered in one turn of the loop.
    private static let batch = 256
    private static let limit = 4096

    init(copying original: Int32, _ names: EnclosedNames, on loop: EventLoop) throws(SystemError) {
        socket = fcntl(original, F_DUPFD_CLOEXEC, 0)
        self.names = names
        self.loop = loop
        guard socket >= 0 else { throw SystemError("fcntl") }
        retry = LoopTimer(on: loop) { [unowned self] in answer() }
        try loop.register(socket, handler: self)
    }

    func stop() {
        retry?.cancel()
        loop.unregister(socket)
        close(socket)
    }

    func ready(_ readiness: Readiness) { answer() }

    private func answer() {
        var query = [UInt8](repeating: 0, count: Self.limit)
        for _ in 0..<Self.batch {
            var from = heimdallr_datagram()
            let count = unsafe query.withUnsafeMutableBytes { buffer in
                unsafe heimdallr_receive_datagram(socket, buffer.baseAddress, buffer.count, &from)
            }
            if count < 0, errno == EAGAIN { return }
            guard count > 0, let answer = NameReply.bytes(to: Array(query[..<count]), from: names) else { continue }
            // An answer that finds no room is lost, as datagrams may be. The program asks again.
            _ = unsafe answer.withUnsafeBytes { buffer in
                unsafe heimdallr_send_datagram(socket, buffer.baseAddress, buffer.count, &from)
            }
        }
        retry?.schedule(after: .zero)
    }
}

/// A TCP connection: queries and answers, each behind its length in two bytes.
private final class NameConnection: ReadinessHandler {
    private let stream: StreamSocket
    private let names: EnclosedNames
    private var input = ByteBuffer()
    private var output = ByteBuffer()
    private var timer: LoopTimer?
    private var ended: ((NameConnection) -> Void)?

    private static let patience = Duration.seconds(10)
    /// Limit of a query's bytes, and of unsent answers. What comes beyond them closes the connection.
    private static let limit = 4096

    init(_ stream: StreamSocket, _ names: EnclosedNames, on loop: EventLoop) {
        self.stream = stream
        self.names = names
        timer = LoopTimer(on: loop) { [unowned self] in end() }
    }

    func begin(_ ended: @escaping (NameConnection) -> Void) {
        self.ended = ended
        timer?.schedule(after: Self.patience)
        do throws(SystemError) { try stream.register(self) } catch { end() }
    }

    func end() {
        guard let ended else { return }
        self.ended = nil
        timer?.cancel()
        stream.close()
        ended(self)
    }

    func ready(_ readiness: Readiness) {
        while ended != nil {
            switch stream.read(into: &input, limit: Self.limit) {
            case .bytes: guard answerAll() else { return end() }
            case .wouldBlock:
                if !flush() { end() }
                return
            case .endOfStream, .failed: return end()
            }
        }
    }

    /// Answers the queries that are whole. Returns `false` if the connection must end.
    private func answerAll() -> Bool {
        while input.count >= 2 {
            let length = Int(input.bytes[0]) << 8 | Int(input.bytes[1])
            guard length <= Self.limit else { return false }
            guard input.count >= 2 + length else { break }
            let query = Array(copying: input.bytes.extracting(2..<2 + length))
            input.consume(2 + length)
            guard let answer = NameReply.bytes(to: query, from: names), output.count < Self.limit else { return false }
            output.append([UInt8(answer.count >> 8), UInt8(answer.count & 255)] + answer)
            timer?.schedule(after: Self.patience)
        }
        return flush()
    }

    private func flush() -> Bool {
        while output.count > 0 {
            switch stream.write(from: &output) {
            case .bytes: continue
            case .wouldBlock: return true
            case .endOfStream, .failed: return false
            }
        }
        return true
    }
}
