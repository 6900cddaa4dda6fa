extension Span where Element == UInt8 {
    /// Compares with a lower-case name.
    func isCaseInsensitively(_ name: StaticString) -> Bool {
        guard count == name.utf8CodeUnitCount else { return false }
        return name.withUTF8Buffer { name in
            for index in indices where unsafe self[index] | 0x20 != name[index] | 0x20 { return false }
            return true
        }
    }

    func elementsEqual(_ other: [UInt8]) -> Bool {
        guard count == other.count else { return false }
        for index in indices where self[index] != other[index] { return false }
        return true
    }
}

extension UnsafeRawBufferPointer {
    /// The bytes as a span; the caller vouches that they outlive it.
    var span8: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            let bytes = unsafe bindMemory(to: UInt8.self)
            return unsafe _overrideLifetime(bytes.span, borrowing: self)
        }
    }
}

/// A C handle in a class's constant, so that a property of it is not an unsafe one.
@safe struct OpaquePointerBox {
    @unsafe let pointer: UnsafeMutableRawPointer
    @unsafe init(_ pointer: UnsafeMutableRawPointer) { unsafe self.pointer = pointer }
}
