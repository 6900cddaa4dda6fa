public import Reactor

// Pieces of a message (RFC 9112).
extension ByteBuffer {
    @inline(__always) public mutating func append(field name: Span<UInt8>, _ value: Span<UInt8>) {
        append(name)
        append(": ")
        append(value)
        append("\r\n")
    }

    /// - Parameter start: the field's name and ": ".
    public mutating func append(line start: StaticString, _ value: [UInt8]) {
        append(start)
        append(value)
        append("\r\n")
    }

    /// Appends a chunk of a body (section 7.1); nothing for an empty piece, which would be the last chunk.
    public mutating func append(chunk piece: Span<UInt8>) {
        guard !piece.isEmpty else { return }
        append(chunkOf: piece.count)
        append(piece)
        append("\r\n")
    }

    /// Appends the size line of a chunk. The caller appends the chunk's bytes and a line end.
    mutating func append(chunkOf count: Int) {
        append(hexadecimal: UInt64(count))
        append("\r\n")
    }

    public mutating func append(lastChunk trailers: [(name: [UInt8], value: [UInt8])]) {
        append("0\r\n")
        for (name, value) in trailers { append(field: name.span, value.span) }
        append("\r\n")
    }
}
