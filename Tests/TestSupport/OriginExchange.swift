import Foundation
import Synchronization

/// One request at a `RecordingOrigin`, for the test's closure, on the connection's own thread.
/// Every call throws when the other side is gone. Closures need not catch this error.
public final class OriginExchange {
    public let head: RecordedRequest
    public private(set) var isClosed = false

    private(set) var reader: MessageReader
    private let record: OriginRecord
    private let index: Int
    private var isBodyRead = false

    init(_ reader: MessageReader, connection: Int, record: OriginRecord) throws {
        self.record = record
        var reader = reader
        let line = try reader.line()
        let parts = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, !parts[0].isEmpty, !parts[1].isEmpty, parts[2] == "HTTP/1.1" else {
            throw TestFailure("not a request line: \(line)")
        }
        let fields = try reader.fields()
        let framing = try Framing(fields)
        guard fields.values("Host").count == 1 else { throw TestFailure("not exactly one Host: \(fields)") }
        let head = RecordedRequest(
            connection: connection, method: parts[0], target: parts[1], version: parts[2], fields: fields,
            framing: framing, isComplete: framing == .none || framing == .length(0))
        self.head = head
        self.reader = reader
        isBodyRead = head.isComplete
        Evidence.received(fields)
        index = record.state.withLock {
            $0.requests.append(head)
            return $0.requests.count - 1
        }
    }

    // MARK: The request's body

    /// Reads the rest of the body, and returns the kept bytes.
    @discardableResult
    public func readBody() throws -> RecordedRequest {
        if !isBodyRead {
            switch head.framing {
            case .none: break
            case .length(let count): try read(count: count)
            case .chunked:
                while let size = try reader.chunkSize() {
                    try read(count: size)
                    guard try reader.take(count: 2) == [13, 10] else { throw TestFailure("a chunk without its CRLF") }
                }
                let trailers = try reader.fields()
                record.state.withLock { $0.requests[index].trailers = trailers }
            }
            isBodyRead = true
            record.state.withLock { $0.requests[index].isComplete = true }
        }
        return record.state.withLock { $0.requests[index] }
    }

    private func read(count: Int) throws {
        var left = count
        while left > 0 {
            if reader.buffered.isEmpty, try !reader.more() {
                throw TestFailure("cut: \(left) bytes of the body missing")
            }
            let piece = reader.buffered.prefix(left)
            left -= piece.count
            record.state.withLock {
                let room = RecordingOrigin.recordLimit - $0.requests[index].body.count
                $0.requests[index].body.append(contentsOf: piece.prefix(room))
                $0.requests[index].bodyCount += piece.count
            }
            reader.buffered.removeFirst(piece.count)
        }
    }

    // MARK: The answer

    /// Sends exactly these bytes.
    public func send(_ text: String) throws { try send(Array(text.utf8)) }

    /// Sends exactly these bytes.
    public func send(_ bytes: [UInt8]) throws { try reader.socket.write(bytes, deadline: .after(.seconds(60))) }

    /// Reads the request's body, then sends a complete response with Content-Length.
    public func respond(
        _ status: Int = 200, _ reason: String = "Answer", fields: [(String, String)] = [], body: String = ""
    ) throws {
        try readBody()
        let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        let text = head.method == "HEAD" ? "" : body
        try send("HTTP/1.1 \(status) \(reason)\r\n\(lines)Content-Length: \(body.utf8.count)\r\n\r\n\(text)")
    }

    /// Sends the head of a chunked response. Follow with `chunk` and `lastChunk`.
    public func startChunked(_ status: Int = 200, fields: [(String, String)] = []) throws {
        let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        try send("HTTP/1.1 \(status) Answer\r\n\(lines)Transfer-Encoding: chunked\r\n\r\n")
    }

    public func chunk(_ text: String) throws {
        try send("\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n")
    }

    public func lastChunk(trailers: [(String, String)] = []) throws {
        try send("0\r\n\(trailers.map { "\($0.0): \($0.1)\r\n" }.joined())\r\n")
    }

    /// Sends a response of `count` bytes. Returns when the kernel has taken them all.
    public func flood(_ count: Int) throws {
        try readBody()
        try send("HTTP/1.1 200 Flood\r\nContent-Length: \(count)\r\n\r\n")
        let block = [UInt8](repeating: 0x78, count: 256 * 1024)
        var left = count
        while left > 0 {
            let piece = min(left, block.count)
            try reader.socket.write(piece == block.count ? block : Array(block[..<piece]), deadline: .never)
            left -= piece
        }
    }

    public func pause(_ time: Duration) { Thread.sleep(forTimeInterval: time / .seconds(1)) }

    /// Reads and records until the other side ends the connection; `true` if this happens within `limit`.
    public func waitForPeerToLeave(within limit: Duration = .seconds(60)) -> Bool {
        reader.deadline = .after(limit)
        do {
            while try reader.more() { reader.buffered = [] }
            isClosed = true
            return true
        } catch is TestFailure { return false } catch {
            record.state.withLock { $0.connections[head.connection].isEndedByPeer = true }
            isClosed = true
            return true
        }
    }

    /// Ends the connection in order, even in the middle of an answer.
    public func close() {
        isClosed = true
        reader.socket.shut()
    }

    /// Ends the connection with a reset (RST).
    public func reset() {
        isClosed = true
        reader.socket.resetOnClose()
    }
}
