import Reactor

/// Body of a request over HTTP/2: unread bytes, and read bytes that are kept for a replay.
struct HTTP2RequestBody: ~Copyable {
    private var buffer = ByteBuffer()
    /// Position in `buffer` of the next byte to read.
    private var position = 0
    /// Number of bytes in `buffer` that were read at least once.
    private var used = 0
    private var keepLimit = 0
    /// Whether the first bytes were dropped, so that the body can't be replayed.
    private(set) var isSpent = false
    /// Number of bytes read in this pass.
    private(set) var taken: UInt64 = 0
    var hasEnded = false

    var isComplete: Bool { hasEnded && position == buffer.count }

    /// Number of bytes that were read and are kept for a replay.
    var kept: Int { used }

    mutating func append(_ bytes: Span<UInt8>, _ spares: SpareBuffers) {
        buffer.borrow(from: spares, makes: false)
        buffer.append(bytes)
    }

    mutating func keep(upTo limit: Int) { if !isSpent { keepLimit = limit } }

    /// Drops the bytes that were read in this pass, and keeps no further ones.
    mutating func stopKeeping(_ spares: SpareBuffers) {
        isSpent = true
        keepLimit = 0
        buffer.consume(position)
        used -= position
        position = 0
        if buffer.isEmpty { buffer.giveBack(to: spares) }
    }

    /// Returns to the first byte.
    /// - Returns: `false`, without a change, if the first bytes were dropped.
    mutating func rewind() -> Bool {
        guard !isSpent else { return false }
        (position, taken) = (0, 0)
        return true
    }

    /// Reads the next bytes.
    /// - Returns: the number of bytes, and how many of them are read for the first time.
    mutating func take(into room: inout MutableSpan<UInt8>, _ spares: SpareBuffers) -> (count: Int, new: Int) {
        let count = min(room.count, buffer.count - position)
        guard count > 0 else { return (0, 0) }
        buffer.copy(position..<(position + count), to: &room, at: 0)
        position += count
        taken += UInt64(count)
        let new = max(0, position - used)
        used += new
        if position > keepLimit { stopKeeping(spares) }
        return (count, new)
    }

    mutating func release() {
        buffer.release()
        (position, used, isSpent) = (0, 0, true)
    }
}
