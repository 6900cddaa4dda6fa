import Reactor

/// Output that is not yet written to a program.
struct StreamOutput: ~Copyable {
    /// Size limit of pieces that are copied. Larger pieces are written directly.
    private static let copyLimit = 16 * 1024

    private(set) var buffer = ByteBuffer()
    private let spares: SpareBuffers
    private var canWrite = true
    /// Whether our side is shut down after this output.
    private var isEnding = false
    private(set) var hasEnded = false

    /// - Parameter spares: lends memory while there is output.
    init(_ spares: SpareBuffers) { self.spares = spares }

    var isEmpty: Bool { buffer.isEmpty }
    var count: Int { buffer.count }

    /// - Returns: whether the stream has just become writable.
    mutating func note(_ readiness: Readiness) -> Bool {
        guard readiness.contains(.writable), !canWrite else { return false }
        canWrite = true
        return true
    }

    mutating func append(_ write: (inout ByteBuffer) -> Void) {
        buffer.borrow(from: spares, makes: false)
        write(&buffer)
    }

    /// Writes as much as the kernel takes.
    /// - Returns: the number of bytes left; `nil` when the connection has failed.
    mutating func flush(to stream: any ByteStream) -> Int? {
        while canWrite, !buffer.isEmpty {
            switch stream.write(from: &buffer) {
            case .bytes: continue
            case .wouldBlock: canWrite = false
            case .endOfStream, .failed: return nil
            }
        }
        if isEnding, buffer.isEmpty, !hasEnded {
            stream.shutdownWriting()
            hasEnded = true
        }
        if buffer.isEmpty { buffer.giveBack(to: spares) }
        return buffer.count
    }

    mutating func end() { isEnding = true }

    enum Step {
        /// The piece waits for the next flush.
        case kept
        /// Number of the piece's bytes written; the stream is full if some are left.
        case written(Int)
        case failed
    }

    /// Writes a large piece at once without a copy; keeps a small one.
    mutating func write(_ piece: Span<UInt8>, to stream: any ByteStream) -> Step {
        guard piece.count > Self.copyLimit else {
            append { $0.append(piece) }
            return .kept
        }
        guard canWrite else { return .written(0) }
        let before = buffer.count
        var taken = 0
        switch stream.write(from: &buffer, then: piece) {
        case .bytes(let count): taken = max(0, count - before)
        case .wouldBlock: break
        case .endOfStream, .failed: return .failed
        }
        // A short write means that the kernel's buffer is full. New room is then reported as an edge (epoll(7)).
        if taken < piece.count { canWrite = false }
        return .written(taken)
    }

    mutating func release() { buffer.release() }
}
