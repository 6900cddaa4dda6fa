import Glibc

/// Memory for buffers that are used for a moment only. Waiting connections hold none. Connections served one after the
/// other share the same memory, which is still in the processor's caches. Loop's thread only.
@safe public final class SpareBuffers {
    /// Bytes of each; the memory of a larger buffer is freed instead.
    public static let size = 64 * 1024

    private let limit: Int
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var spares: [UnsafeMutableRawBufferPointer] = unsafe []

    public init(limit: Int = 32) {
        self.limit = limit
        unsafe spares.reserveCapacity(limit)
    }

    deinit {
        while let spare = unsafe spares.popLast() { unsafe free(spare.baseAddress) }
    }

    /// `nil` when none is left.
    func take() -> UnsafeMutableRawBufferPointer? { unsafe spares.popLast() }

    func keep(_ memory: UnsafeMutableRawBufferPointer) -> Bool {
        guard memory.count == Self.size, unsafe spares.count < limit else { return false }
        unsafe spares.append(memory)
        return true
    }
}

extension ByteBuffer {
    /// Takes the memory of a spare buffer, or else allocates that size.
    /// - Parameter makes: `false` delays the allocation to the first byte when no spare is left. For small contents in
    ///   many buffers at once.
    public mutating func borrow(from spares: SpareBuffers, makes: Bool = true) {
        guard capacity == 0 else { return }
        if let spare = unsafe spares.take() {
            unsafe adopt(spare)
        } else if makes {
            unsafe adopt(ByteBuffer.allocate(SpareBuffers.size))
        }
    }

    /// Gives the memory away. The buffer must be empty.
    public mutating func giveBack(to spares: SpareBuffers) {
        precondition(isEmpty)
        guard capacity > 0 else { return }
        removeAll()
        let memory = unsafe surrender()
        if !(unsafe spares.keep(memory)) { unsafe free(memory.baseAddress) }
    }
}
