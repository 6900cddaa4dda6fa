/// Memory for buffers that are in use only for a moment: connections that wait hold none, and those that are served one
/// after the other get the same, which the processor still has at hand. Loop's thread only.
@safe public final class SpareBuffers {
    /// Bytes of each; a larger buffer's memory is given back to the system instead.
    public static let size = 64 * 1024

    private let limit: Int
    private var spares: [UnsafeMutableRawBufferPointer] = unsafe []

    /// - Parameter limit: how many are kept.
    public init(limit: Int = 32) {
        self.limit = limit
        unsafe spares.reserveCapacity(limit)
    }

    deinit {
        while let spare = unsafe spares.popLast() { unsafe spare.deallocate() }
    }

    /// `nil`: there is none.
    func take() -> UnsafeMutableRawBufferPointer? { unsafe spares.popLast() }

    /// - Returns: whether it was kept.
    func keep(_ memory: UnsafeMutableRawBufferPointer) -> Bool {
        guard memory.count == Self.size, unsafe spares.count < limit else { return false }
        unsafe spares.append(memory)
        return true
    }
}

extension ByteBuffer {
    /// Has a spare one's memory from now on, if there is one, or else new memory of that size.
    ///
    /// - Parameter makes: false: where there is no spare one, memory comes with the first byte, as much as it needs. For
    ///   what is small mostly, and in many buffers at once.
    public mutating func borrow(from spares: SpareBuffers, makes: Bool = true) {
        guard capacity == 0 else { return }
        if let spare = unsafe spares.take() {
            unsafe adopt(spare)
        } else if makes {
            unsafe adopt(.allocate(byteCount: SpareBuffers.size, alignment: 8))
        }
    }

    /// Has no memory from now on. Only for an empty buffer.
    public mutating func giveBack(to spares: SpareBuffers) {
        precondition(isEmpty)
        guard capacity > 0 else { return }
        removeAll()
        let memory = unsafe surrender()
        if !(unsafe spares.keep(memory)) { unsafe memory.deallocate() }
    }
}
