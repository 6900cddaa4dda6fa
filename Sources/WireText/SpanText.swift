import Glibc

extension Array where Element == UInt8 {
    @inlinable
    public init(copying span: Span<UInt8>) { self = unsafe span.withUnsafeBufferPointer { unsafe Array($0) } }

    @inlinable
    public mutating func append(copying span: Span<UInt8>) {
        unsafe span.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
    }

    /// Overwrites the elements from `start` on, which must exist.
    public mutating func replace(from start: Int, copying span: Span<UInt8>) {
        precondition(start >= 0 && span.count <= count - start)
        guard !span.isEmpty else { return }
        unsafe withUnsafeMutableBytes { target in
            unsafe span.withUnsafeBytes { source in
                _ = unsafe memcpy(
                    target.baseAddress.unsafelyUnwrapped + start, source.baseAddress.unsafelyUnwrapped, source.count)
            }
        }
    }
}

extension Span where Element == UInt8 {
    /// Returns the offset of the first `byte` at or after `start`; `count` if there is none.
    public func position(of byte: UInt8, from start: Int = 0) -> Int {
        guard start >= 0, start < count else { return count }
        return unsafe withUnsafeBytes { bytes in
            let base = unsafe bytes.baseAddress.unsafelyUnwrapped
            let found = unsafe memchr(base + start, Int32(byte), bytes.count - start)
            return unsafe found.map { unsafe UnsafeRawPointer($0) - base } ?? bytes.count
        }
    }

    @inlinable
    public func elementsEqual(_ other: [UInt8]) -> Bool {
        guard count == other.count else { return false }
        for index in indices where self[index] != other[index] { return false }
        return true
    }

    /// Compares with a name in lower case.
    @inlinable
    public func equalsIgnoringCase(_ lowercased: [UInt8]) -> Bool {
        guard count == lowercased.count else { return false }
        for index in indices where ASCII.lowercased(self[index]) != lowercased[index] { return false }
        return true
    }

    /// The bytes without leading and trailing blanks and line ends.
    public var trimmed: Span<UInt8> {
        @_lifetime(copy self)
        get {
            var (start, end) = (0, count)
            while start < end, ASCII.isWhitespace(self[start]) { start += 1 }
            while end > start, ASCII.isWhitespace(self[end - 1]) { end -= 1 }
            return extracting(start..<end)
        }
    }

    /// Text in which invalid UTF-8 is U+FFFD.
    public var text: String { String(decoding: [UInt8](copying: self), as: UTF8.self) }
}
