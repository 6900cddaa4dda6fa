import Reactor
import Testing

@Suite("Spare buffers")
struct SpareBuffersTests {
    private func address(_ buffer: inout ByteBuffer) -> Int {
        buffer.append(byte: 1)
        let address = unsafe buffer.withUnsafeBase { Int(bitPattern: $0) }
        buffer.removeAll()
        return address
    }

    @Test("memory that one buffer gives back is the next one's, the last first")
    func reuse() {
        let spares = SpareBuffers()
        var first = ByteBuffer()
        var second = ByteBuffer()
        first.borrow(from: spares)
        second.borrow(from: spares)
        #expect(first.capacity == SpareBuffers.size && second.capacity == SpareBuffers.size)
        let last = address(&second)
        #expect(address(&first) != last)
        first.giveBack(to: spares)
        second.giveBack(to: spares)
        #expect(first.capacity == 0 && second.capacity == 0)
        var third = ByteBuffer()
        third.borrow(from: spares)
        #expect(address(&third) == last)
    }

    @Test("a buffer that has memory keeps it, and one that has none gives nothing back")
    func nothingToDo() {
        let spares = SpareBuffers()
        var buffer = ByteBuffer(capacity: 100)
        buffer.borrow(from: spares)
        #expect(buffer.capacity == 100)
        var empty = ByteBuffer()
        empty.giveBack(to: spares)
        #expect(empty.capacity == 0)
    }

    @Test("a buffer that wants no new memory gets a spare one's or none")
    func small() {
        let spares = SpareBuffers()
        var buffer = ByteBuffer()
        buffer.borrow(from: spares, makes: false)
        #expect(buffer.capacity == 0)
        var other = ByteBuffer()
        other.borrow(from: spares)
        other.giveBack(to: spares)
        buffer.borrow(from: spares, makes: false)
        #expect(buffer.capacity == SpareBuffers.size)
    }

    @Test("memory of another size, or more than the limit, goes back to the system")
    func limits() {
        let spares = SpareBuffers(limit: 1)
        var large = ByteBuffer(capacity: 100_000)
        large.giveBack(to: spares)
        var first = ByteBuffer()
        first.borrow(from: spares)
        #expect(first.capacity == SpareBuffers.size)
        var second = ByteBuffer()
        second.borrow(from: spares)
        let kept = address(&first)
        first.giveBack(to: spares)
        second.giveBack(to: spares)
        var third = ByteBuffer()
        third.borrow(from: spares)
        #expect(address(&third) == kept)
    }

    @Test("secret bytes are wiped before another buffer gets the memory")
    func secrets() {
        let spares = SpareBuffers()
        var secret = ByteBuffer(isSecret: true)
        secret.borrow(from: spares)
        secret.append("swordfish")
        secret.consume(9)
        secret.giveBack(to: spares)
        var next = ByteBuffer()
        next.borrow(from: spares)
        let isClean = unsafe next.withSpareCapacity(9) { room in
            let isClean = unsafe room[..<9].allSatisfy { $0 == 0 }
            return isClean ? 1 : 0
        }
        #expect(isClean == 1)
    }
}
