import Glibc

/// Spare memory for buffers that are used only briefly. A waiting connection holds no memory. Connections served one
/// after the other share memory that is still in the processor's caches. Loop's thread only.
@safe public final class SpareBuffers {
    /// Size of each spare in bytes. Memory of another size is freed instead.
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

    /// Returns a spare; `nil` when none is left.
    func take() -> UnsafeMutableRawBufferPointer? { unsafe spares.popLast() }

    func keep(_ memory: UnsafeMutableRawBufferPointer) -> Bool {
        guard memory.count == Self.size, unsafe spares.count < limit else { return false }
        unsafe spares.append(memory)
        return true
    }
}

extension ByteBuffer {
    /// Gives a buffer without memory a spare. If no spare is left, allocates memory of that size.
    /// - Parameter makes: `false` allocates nothing if no spare is left. The buffer then grows with its bytes, which
    ///   suits many buffers with little content.
    public mutating func borrow(from spares: SpareBuffers, makes: Bool = true) {
        guard capacity == 0 else { return }
        if let spare = unsafe spares.take() {
            unsafe adopt(spare)
        } else if makes {
            unsafe adopt(ByteBuffer.allocate(SpareBuffers.size))
        }
    }

    /// Gives the memory back to the spares, or frees it if they are full. The buffer must be empty.
    public mutating func giveBack(to spares: SpareBuffers) {
        precondition(isEmpty)
        guard capacity > 0 else { return }
        removeAll()
        let memory = unsafe surrender()
        if !(unsafe spares.keep(memory)) { unsafe free(memory.baseAddress) }
    }
}
