import Reactor
import Testing

@Suite("bytes come out as they went in")
struct ByteBufferTests {
    /// As a plain array, to compare with.
    private func contents(_ buffer: borrowing ByteBuffer) -> [UInt8] {
        buffer.withBytes { bytes in bytes.indices.map { bytes[$0] } }
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `a buffer behaves as its model, whatever is done to it`(seed: UInt64) {
        var random = SplitMix(state: seed)
        var buffer = ByteBuffer(capacity: Int(random.next() % 3) * 64)
        var model: [UInt8] = []
        for _ in 0..<2000 {
            if seed % 2 == 1, random.next() % 8 == 0 { buffer.isSecret.toggle() }
            switch random.next() % 12 {
            case 0...2:
                let piece = (0..<Int(random.next() % 200)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
                buffer.append(piece)
                model += piece
            case 3:
                let byte = UInt8(truncatingIfNeeded: random.next())
                buffer.append(byte: byte)
                model.append(byte)
            case 4:
                buffer.append("static")
                model += Array("static".utf8)
            case 5:
                let number = random.next() >> (random.next() % 64)
                buffer.append(decimal: number)
                buffer.append(hexadecimal: number)
                model += Array((String(number) + String(number, radix: 16)).utf8)
            case 6...8:
                let count = Int(random.next() % UInt64(model.count + 1))
                buffer.consume(count)
                model.removeFirst(count)
            case 9...10:
                buffer.reserve(Int(random.next() % 500))
            default:
                switch random.next() % 8 {
                case 0:
                    buffer.release()
                    #expect(buffer.capacity == 0)
                    model = []
                case 1:
                    buffer.removeAll()
                    model = []
                default:
                    guard !model.isEmpty else { continue }
                    let start = Int(random.next() % UInt64(model.count))
                    let end = start + Int(random.next() % UInt64(model.count - start + 1))
                    var target = [UInt8](repeating: 0, count: end - start + 3)
                    var span = target.mutableSpan
                    buffer.copy(start..<end, to: &span, at: 2)
                    #expect(target == [0, 0] + model[start..<end] + [0])
                }
            }
            #expect(buffer.count == model.count)
            #expect(buffer.isEmpty == model.isEmpty)
            #expect(buffer.capacity >= model.count)
        }
        #expect(contents(buffer) == model)
    }

    /// The bytes behind the last byte of a buffer that was just emptied.
    private func rest(of buffer: inout ByteBuffer, _ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        _ = unsafe buffer.withSpareCapacity(count) { spare in
            bytes = unsafe Array(spare.prefix(count))
            return 0
        }
        return bytes
    }

    @Test func `secret bytes of a buffer are wiped, and others are not`() {
        var buffer = ByteBuffer(capacity: 64)
        buffer.isSecret = true
        buffer.append("secret")
        buffer.isSecret = false
        buffer.append("body")
        buffer.consume(6)
        #expect(contents(buffer) == Array("body".utf8))
        buffer.consume(4)
        #expect(rest(of: &buffer, 10) == [0, 0, 0, 0, 0, 0] + Array("body".utf8))
        // Once, not for each piece that follows.
        buffer.append("another")
        buffer.removeAll()
        #expect(rest(of: &buffer, 7) == Array("another".utf8))

        buffer.isSecret = true
        buffer.append("secret")
        buffer.removeAll()
        #expect(rest(of: &buffer, 6) == [0, 0, 0, 0, 0, 0])
    }

    @Test func `a secret that is moved within its memory stays in one place only`() {
        var buffer = ByteBuffer(capacity: 64, isSecret: true)
        buffer.append([UInt8](repeating: 1, count: 50))
        buffer.append([2, 2, 2, 2])
        buffer.consume(50)
        buffer.reserve(30)
        #expect(buffer.capacity == 64)
        #expect(contents(buffer) == [2, 2, 2, 2])
        #expect(rest(of: &buffer, 50) == [UInt8](repeating: 0, count: 50))
    }

    @Test func `an empty buffer lends an empty span`() {
        let buffer = ByteBuffer()
        let isEmpty = buffer.bytes.isEmpty
        #expect(isEmpty)
        #expect(contents(buffer) == [])
    }

    @Test func `the smallest and the largest numbers are appended in full`() {
        var buffer = ByteBuffer()
        for number in [0, 9, 10, 15, 16, UInt64.max] {
            buffer.append(decimal: number)
            buffer.append(byte: 32)
            buffer.append(hexadecimal: number)
            buffer.append(byte: 10)
        }
        #expect(
            String(decoding: contents(buffer), as: UTF8.self)
                == "0 0\n9 9\n10 a\n15 f\n16 10\n18446744073709551615 ffffffffffffffff\n")
    }

    @Test func `a stream through a buffer does not make it grow`() {
        var buffer = ByteBuffer(capacity: 256)
        for _ in 0..<10_000 {
            buffer.append([UInt8](repeating: 1, count: 100))
            buffer.consume(99)
            buffer.consume(1)
        }
        #expect(buffer.capacity == 256)
        buffer.append([1])
        for _ in 0..<10_000 {
            buffer.append([UInt8](repeating: 1, count: 100))
            buffer.consume(100)
        }
        #expect(buffer.count == 1)
        #expect(buffer.capacity <= 512)
    }
}

/// Random numbers that come again: Steele, Lea and Flood's SplitMix64.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
