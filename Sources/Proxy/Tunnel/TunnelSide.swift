import Reactor

/// One end of a tunnel and its state.
final class TunnelSide {
    let stream: any ByteStream
    private(set) var canRead = true
    private var canWrite = true
    /// Whether epoll reported the peer's end. No further report comes, so reading goes on after a short read.
    private var isEnding: Bool
    private(set) var hasEnded: Bool

    init(_ stream: any ByteStream, isEnding: Bool = false, hasEnded: Bool = false) {
        self.stream = stream
        self.isEnding = isEnding
        self.hasEnded = hasEnded
    }

    func note(_ readiness: Readiness) {
        // The next reads return earlier bytes first, then the error or hang-up.
        if !readiness.isDisjoint(with: [.readable, .peerClosed, .failed]) { canRead = true }
        if !readiness.isDisjoint(with: [.writable, .failed]) { canWrite = true }
        if !readiness.isDisjoint(with: [.peerClosed, .failed]) { isEnding = true }
    }

    /// Reads once.
    /// - Returns: the number of bytes, which may be 0; `nil` when the connection has failed.
    func read(into buffer: inout ByteBuffer, limit: Int) -> Int? {
        switch stream.read(into: &buffer, limit: limit) {
        case .bytes(let count):
            // After a short read, the kernel's buffer is empty, and epoll reports the next byte (epoll(7)).
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

    /// Writes as much as the kernel accepts. The rest stays in `buffer`.
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
