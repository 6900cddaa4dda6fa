import Foundation
import Synchronization

/// A request as the origin received it.
public struct RecordedRequest: Sendable {
    /// Number of the request's connection, from 0.
    public var connection: Int
    public var method: String
    public var target: String
    public var version: String
    public var fields: [Field]
    public var framing: Framing
    /// First bytes of the body, up to `RecordingOrigin.recordLimit`.
    public var body: [UInt8] = []
    /// Number of all bytes of the body, kept or not.
    public var bodyCount = 0
    public var trailers: [Field] = []
    /// Whether the body was received to its proper end.
    public var isComplete = false

    public var text: String { String(decoding: body, as: UTF8.self) }
    public var line: String { "\(method) \(target) \(version)" }
    public func field(_ name: String) -> String? { fields.value(name) }
    public func values(_ name: String) -> [String] { fields.values(name) }
}

/// A connection as the origin saw it.
public struct RecordedConnection: Sendable {
    /// First bytes received, up to `RecordingOrigin.recordLimit`.
    public var bytes: [UInt8] = []
    /// Number of all bytes received, kept or not.
    public var byteCount = 0
    /// Violation of RFC 9112's strict grammar in a message.
    public var problem: String?
    /// Whether the other side ended the connection, in order or by reset.
    public var isEndedByPeer = false
    /// Whether both sides are done with the connection.
    public var isOver = false
}

/// An HTTP/1.1 server on loopback that records every received byte. A closure gives the answers, well-formed or not.
/// Each connection has a thread. A test checks the bytes that really arrived.
///
///     let origin = try RecordingOrigin { try $0.respond(body: "hello") }
///     …
///     #expect(origin.requests.map(\.line) == ["GET / HTTP/1.1"])
///
/// The closure runs after each request's head. If it leaves the body unread, the body is read and recorded afterwards.
public final class RecordingOrigin: Sendable {
    public typealias Handler = @Sendable (OriginExchange) throws -> Void

    /// Limit in bytes of the kept part of a connection, and of a body. Further bytes are only counted.
    public static let recordLimit = 1 << 20

    public let port: UInt16
    /// `127.0.0.1:PORT`
    public var authority: String { "127.0.0.1:\(port)" }
    /// `http://127.0.0.1:PORT`
    public var url: String { "http://\(authority)" }

    private let listener: Socket
    private let record = OriginRecord()

    /// - Throws: when no socket can be opened.
    public init(_ handler: @escaping Handler = { try $0.respond(body: "ok") }) throws {
        (listener, port) = try Socket.listener()
        Thread.detachNewThread { [listener, record] in
            while let socket = try? listener.accept() {
                guard let index = record.open(socket) else { return socket.shut() }
                Thread.detachNewThread { record.serve(socket, index, handler) }
            }
        }
    }

    deinit { stop() }

    /// Every request so far, in the order of their heads.
    public var requests: [RecordedRequest] { record.state.withLock { $0.requests } }
    /// Every connection so far, in the order of their acceptance.
    public var connections: [RecordedConnection] { record.state.withLock { $0.connections } }
    /// Violations in all messages. A proxy must leave this empty.
    public var problems: [String] { connections.compactMap(\.problem) }

    /// Waits until `count` requests have been received completely.
    public func completeRequests(
        _ count: Int, within limit: Duration = .seconds(20)
    ) async throws -> [RecordedRequest] {
        let record = record
        return try await eventually("\(count) complete requests at the origin", within: limit) {
            let complete = record.state.withLock { $0.requests.filter(\.isComplete) }
            return complete.count >= count ? complete : nil
        }
    }

    /// Stops accepting and ends every connection.
    public func stop() {
        listener.shut()
        record.stop()
    }
}

/// State shared by an origin's threads.
final class OriginRecord: Sendable {
    struct State {
        var requests: [RecordedRequest] = []
        var connections: [RecordedConnection] = []
        var sockets: [Int: Socket] = [:]
        var isStopped = false
    }
    let state = Mutex(State())

    func open(_ socket: Socket) -> Int? {
        state.withLock {
            if $0.isStopped { return nil }
            $0.connections.append(RecordedConnection())
            $0.sockets[$0.connections.count - 1] = socket
            return $0.connections.count - 1
        }
    }

    func stop() {
        state.withLock {
            $0.isStopped = true
            for socket in $0.sockets.values { socket.shut() }
        }
    }

    func serve(_ socket: Socket, _ index: Int, _ handler: RecordingOrigin.Handler) {
        defer {
            state.withLock {
                $0.connections[index].isOver = true
                $0.sockets[index] = nil
            }
            socket.shut()
        }
        var reader = MessageReader(socket: socket, deadline: .never) { [self] piece in
            state.withLock { $0.connections[index].append(piece) }
        }
        while true {
            do {
                if reader.buffered.isEmpty, try !reader.more() {
                    state.withLock { $0.connections[index].isEndedByPeer = true }
                    return
                }
                let exchange = try OriginExchange(reader, connection: index, record: self)
                try handler(exchange)
                if exchange.isClosed { return }
                _ = try exchange.readBody()
                reader = exchange.reader
            } catch let failure as TestFailure {
                state.withLock { if !$0.isStopped { $0.connections[index].problem = failure.description } }
                return
            } catch {
                // A socket error: the other side is gone, or a handler gave up.
                state.withLock { $0.connections[index].isEndedByPeer = true }
                return
            }
        }
    }
}

extension RecordedConnection {
    fileprivate mutating func append(_ piece: ArraySlice<UInt8>) {
        byteCount += piece.count
        bytes.append(contentsOf: piece.prefix(RecordingOrigin.recordLimit - bytes.count))
        if piece.isEmpty { isEndedByPeer = true }
    }
}
