import HTTPMessage
import Reactor

/// Unused input of a program, and whether more can be read.
struct StreamInput: ~Copyable {
    var buffer = ByteBuffer()
    private let spares: SpareBuffers
    private(set) var canRead = true
    /// Whether the program has ended its side and all of its bytes have been read.
    private(set) var hasEnded = false
    /// Whether the kernel has announced the program's end. Then even a short read must be followed by another.
    private(set) var isEnding = false
    /// Whether no byte of the connection has been used, so that HTTP/2's preface may come.
    var isAtStart = true

    /// - Parameter spares: lends memory while there is input.
    init(_ spares: SpareBuffers) { self.spares = spares }

    /// Drops the unread input before another stream takes over.
    mutating func restart() {
        buffer.removeAll()
        settle()
        (canRead, hasEnded, isEnding, isAtStart) = (true, false, false, true)
    }

    var isEmpty: Bool { buffer.isEmpty }
    var count: Int { buffer.count }
    /// Whether the connection begins with HTTP/2's preface, or 4 bytes or more of it (RFC 9113, section 3.4). Behind a
    /// request of HTTP/1.1 the preface has no meaning.
    var isHTTP2: Bool {
        guard isAtStart, count >= 4 else { return false }
        let bytes = buffer.bytes
        for index in 0..<min(count, Self.preface.count) where bytes[index] != Self.preface[index] { return false }
        return true
    }

    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    /// Whether the input is empty and the loop will report new bytes.
    var isWaiting: Bool { buffer.isEmpty && !canRead }

    /// - Returns: whether the program's end was announced for the first time.
    mutating func note(_ readiness: Readiness) -> Bool {
        canRead = true
        guard readiness.contains(.peerClosed), !isEnding else { return false }
        isEnding = true
        return true
    }

    /// Reads once, and notes whether another read is worthwhile.
    /// - Returns: `false` when the connection has failed.
    mutating func fill(from stream: any ByteStream, limit: Int) -> Bool {
        buffer.borrow(from: spares)
        switch stream.read(into: &buffer, limit: limit) {
        // A short read means that the kernel's buffer is empty. A new byte is then reported as an edge (epoll(7)).
        case .bytes(let count): canRead = count == limit || isEnding
        case .wouldBlock: canRead = false
        case .endOfStream:
            canRead = false
            hasEnded = true
        case .failed: return false
        }
        return true
    }

    /// Gives the memory of an empty buffer back to `spares`.
    mutating func settle() {
        if buffer.isEmpty { buffer.giveBack(to: spares) }
    }
}
