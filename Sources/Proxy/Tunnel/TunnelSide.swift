import Reactor

/// One end of a tunnel and its state.
final class TunnelSide {
    let stream: any ByteStream
    private(set) var canRead = true
    private var canWrite = true
    /// The end has been announced, so a short read is not the last one.
    private var isEnding: Bool
    private(set) var hasEnded: Bool

    init(_ stream: any ByteStream, isEnding: Bool = false, hasEnded: Bool = false) {
        self.stream = stream
        self.isEnding = isEnding
        self.hasEnded = hasEnded
    }

    func note(_ readiness: Readiness) {
        // Errors and hang-ups show in the next read, behind earlier bytes.
        if !readiness.isDisjoint(with: [.readable, .peerClosed, .failed]) { canRead = true }
        if !readiness.isDisjoint(with: [.writable, .failed]) { canWrite = true }
        if !readiness.isDisjoint(with: [.peerClosed, .failed]) { isEnding = true }
    }

    /// Reads once.
    /// - Returns: the number of bytes; `nil` when the connection has failed.
    func read(into buffer: inout ByteBuffer, limit: Int) -> Int? {
        switch stream.read(into: &buffer, limit: limit) {
        case .bytes(let count):
            // A short read: the kernel's buffer is empty, and its next byte is a new edge (epoll(7)).
            canRead = count == limit || isEnding
            return count
        case .wouldBlock: canRead = false
        case .endOfStream:
            canRead = false
            hasEnded = true
        case .failed: return nil
        }
        return 0
    }

    /// Writes as much as the kernel takes; the rest stays in `buffer`.
    /// - Returns: the number of bytes written; `nil` when the connection has failed.
    func write(from buffer: inout ByteBuffer) -> Int? {
        var written = 0
        while canWrite, !buffer.isEmpty {
            switch stream.write(from: &buffer) {
            case .bytes(let count): written += count
            case .wouldBlock: canWrite = false
            case .endOfStream, .failed: return nil
            }
        }
        return written
    }
}
