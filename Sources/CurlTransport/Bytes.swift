extension UnsafeRawBufferPointer {
    /// The bytes as a span. The caller ensures that they outlive it.
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
