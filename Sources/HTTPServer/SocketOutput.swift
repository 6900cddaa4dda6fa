import Reactor

/// What waits to be written to a client.
struct SocketOutput: ~Copyable {
    /// Larger pieces are written from where they lie instead of being copied.
    private static let copyLimit = 16 * 1024

    private(set) var buffer = ByteBuffer()
    private var canWrite = true

    var isEmpty: Bool { buffer.isEmpty }
    var count: Int { buffer.count }

    /// - Returns: whether there is something to write now.
    mutating func note(_ readiness: Readiness) -> Bool {
        guard readiness.contains(.writable), !canWrite else { return false }
        canWrite = true
        return !buffer.isEmpty
    }

    mutating func append(_ write: (inout ByteBuffer) -> Void) {
        write(&buffer)
    }

    /// Writes as much as the kernel takes.
    /// - Returns: false when the connection has failed.
    mutating func flush(to socket: StreamSocket) -> Bool {
        while canWrite, !buffer.isEmpty {
            switch socket.write(from: &buffer) {
            case .bytes: continue
            case .wouldBlock: canWrite = false
            case .endOfStream, .failed: return false
            }
        }
        return true
    }

    enum Step {
        /// It waits to be flushed.
        case kept
        /// It is out, or what the kernel did not take waits for room.
        case written
        case failed
    }

    /// Writes a large piece at once, without copying what the kernel takes; keeps a small one.
    mutating func write(_ piece: Span<UInt8>, to socket: StreamSocket) -> Step {
        guard canWrite, piece.count > Self.copyLimit else {
            buffer.append(piece)
            return .kept
        }
        let before = buffer.count
        switch socket.write(from: &buffer, then: piece) {
        case .bytes(let count):
            let taken = max(0, count - before)
            if taken < piece.count {
                buffer.append(piece.extracting(taken...))
                // A short write: the kernel's buffer is full, and room in it is a new edge.
                canWrite = false
            }
        case .wouldBlock:
            canWrite = false
            buffer.append(piece)
        case .endOfStream, .failed: return .failed
        }
        return .written
    }

    mutating func release() {
        buffer.release()
    }
}
