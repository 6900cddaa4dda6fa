import HTTPMessage
import Reactor

/// What came from a client and is not used yet, and whether more can come.
struct SocketInput: ~Copyable {
    var buffer = ByteBuffer()
    private let spares: SpareBuffers
    private(set) var canRead = true
    /// The client has ended its side, and all that it sent has been read.
    private(set) var hasEnded = false
    /// Its end has been announced: a short read is not the last one.
    private(set) var isEnding = false

    /// - Parameter spares: gives memory for as long as something is here.
    init(_ spares: SpareBuffers) { self.spares = spares }

    var isEmpty: Bool { buffer.isEmpty }
    var count: Int { buffer.count }
    /// Nothing is there, and the loop says when there is.
    var isWaiting: Bool { buffer.isEmpty && !canRead }

    /// - Returns: whether it is news that the client has ended its side.
    mutating func note(_ readiness: Readiness) -> Bool {
        canRead = true
        guard readiness.contains(.peerClosed), !isEnding else { return false }
        isEnding = true
        return true
    }

    /// One read; notes whether another is worth it.
    /// - Returns: false when the connection has failed.
    mutating func fill(from socket: StreamSocket, limit: Int) -> Bool {
        buffer.borrow(from: spares)
        switch socket.read(into: &buffer, limit: limit) {
        // Less than asked for: the kernel's buffer is empty, and its next byte is a new edge (epoll(7)).
        case .bytes(let count): canRead = count == limit || isEnding
        case .wouldBlock: canRead = false
        case .endOfStream:
            canRead = false
            hasEnded = true
        case .failed: return false
        }
        return true
    }

    /// Keeps no memory for nothing.
    mutating func settle() {
        if buffer.isEmpty { buffer.giveBack(to: spares) }
    }
}
