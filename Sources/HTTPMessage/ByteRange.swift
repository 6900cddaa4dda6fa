import WireText

/// A range of the parsed buffer in byte offsets. Parsed messages keep ranges instead of copies.
public struct ByteRange: Sendable, Equatable, Hashable {
    /// Offset of the first byte.
    public var start: Int32
    /// Offset after the last byte.
    public var end: Int32

    /// Offsets in bytes. Both must fit in 31 bits, which `HeadLimits` guarantees for parsed messages.
    @inlinable
    public init(_ start: Int, _ end: Int) {
        self.start = Int32(truncatingIfNeeded: start)
        self.end = Int32(truncatingIfNeeded: end)
    }

    @inlinable
    public static var empty: ByteRange { ByteRange(0, 0) }

    @inlinable
    public var count: Int { Int(end) - Int(start) }

    @inlinable
    public var isEmpty: Bool { start == end }

    /// For `Span.extracting(_:)` and array slices.
    @inlinable
    public var range: Range<Int> { Int(start)..<Int(end) }

    /// Returns the bytes as a string, with invalid UTF-8 replaced. Not for the hot path.
    public func string(in bytes: Span<UInt8>) -> String { bytes.extracting(range).text }

    /// Whether the bytes, with ASCII letters in lower case, equal `lowercased`.
    public func equalsIgnoringCase(_ lowercased: [UInt8], in bytes: Span<UInt8>) -> Bool {
        bytes.extracting(range).equalsIgnoringCase(lowercased)
    }
}
