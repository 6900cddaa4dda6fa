import Reactor

/// The body of a request over HTTP/2: bytes that have arrived, and those kept to be read again.
struct HTTP2RequestBody: ~Copyable {
    private var buffer = ByteBuffer()
    /// Position in `buffer` of the next byte to read.
    private var position = 0
    /// Number of bytes of `buffer` that were read at least once.
    private var used = 0
    private var keepLimit = 0
    /// The first bytes are gone.
    private(set) var isSpent = false
    /// Number of bytes read in this pass.
    private(set) var taken: UInt64 = 0
    /// The client has ended its message.
    var hasEnded = false

    /// All of it has been read.
    var isComplete: Bool { hasEnded && position == buffer.count }

    mutating func append(_ bytes: Span<UInt8>) { buffer.append(bytes) }

    mutating func keep(upTo limit: Int) { if !isSpent { keepLimit = limit } }

    /// - Returns: `false`, and changes nothing, when the first bytes are gone.
    mutating func rewind() -> Bool {
        guard !isSpent else { return false }
        (position, taken) = (0, 0)
        return true
    }

    /// Reads the next bytes.
    /// - Returns: the number of bytes, and the number of those that were not read before.
    mutating func take(into room: inout MutableSpan<UInt8>) -> (count: Int, new: Int) {
        let count = min(room.count, buffer.count - position)
        guard count > 0 else { return (0, 0) }
        buffer.copy(position..<(position + count), to: &room, at: 0)
        position += count
        taken += UInt64(count)
        let new = max(0, position - used)
        used += new
        if position > keepLimit {
            isSpent = true
            keepLimit = 0
            buffer.consume(position)
            used -= position
            position = 0
        }
        return (count, new)
    }

    mutating func release() {
        buffer.release()
        (position, used, isSpent) = (0, 0, true)
    }
}
