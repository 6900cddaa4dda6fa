/// A reader of the bytes of a handshake message, from front to end (RFC 8446, section 3).
struct MessageReader {
    /// The bytes not read yet.
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    private init(rest: ArraySlice<UInt8>) { self.rest = rest }

    var isAtEnd: Bool { rest.isEmpty }

    /// - Returns: the next `count` bytes; `nil` when there are fewer.
    mutating func bytes(_ count: Int) -> MessageReader? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return MessageReader(rest: rest.prefix(count))
    }

    mutating func integer(_ width: Int) -> Int? { bytes(width)?.rest.reduce(0) { $0 << 8 | Int($1) } }

    /// Reads a vector: its length in `width` bytes, then its content (section 3.4).
    mutating func vector(_ width: Int) -> MessageReader? {
        guard let count = integer(width) else { return nil }
        return bytes(count)
    }
}
