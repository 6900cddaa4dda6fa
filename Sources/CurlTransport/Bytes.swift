extension UnsafeRawBufferPointer {
    /// The bytes as a span. The caller ensures that the bytes outlive the span.
    var span8: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            let bytes = unsafe bindMemory(to: UInt8.self)
            return unsafe _overrideLifetime(bytes.span, borrowing: self)
        }
    }
}

/// A wrapper of a C handle. A class can store it in a property that is not marked unsafe.
@safe struct OpaquePointerBox {
    @unsafe let pointer: UnsafeMutableRawPointer
    @unsafe init(_ pointer: UnsafeMutableRawPointer) { unsafe self.pointer = pointer }
}
