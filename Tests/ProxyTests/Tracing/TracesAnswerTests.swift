import Testing

@testable import Proxy

@Suite("a collector's answer")
struct TracesAnswerTests {
    @Test func `a collector's answer tells how many spans were refused, and why`() throws {
        #expect(try #require(TracesAnswer([])).rejected == 0)
        let some = try #require(TracesAnswer([0x0A, 0x06, 0x08, 0x96, 0x01, 0x12, 0x01, 0x78]))
        #expect(some.rejected == 150 && some.message == "x")
        // A number below zero, and one that does not fit.
        let ones = [UInt8](repeating: 0xFF, count: 9)
        #expect(TracesAnswer([0x0A, 0x0B, 0x08] + ones + [0x01])?.rejected == -1)
        #expect(TracesAnswer([0x0A, 0x0B, 0x08] + ones + [0x02]) == nil)
        // Fields of later versions.
        #expect(TracesAnswer([0x10, 0x07, 0x1A, 0x01, 0x00, 0x25, 0, 0, 0, 0, 0x31, 0, 0, 0, 0, 0, 0, 0, 0]) != nil)
    }

    @Test(arguments: [
        [0x0A], [0x0A, 0x05, 0x08], [0x00, 0x00], [0x0B], [0x0F, 0x01], [0x25, 0, 0, 0], [0x80], [0x7B],
    ])
    func `bytes that are no answer of a collector are refused`(bytes: [UInt8]) { #expect(TracesAnswer(bytes) == nil) }

    @Test func `no bytes from a collector end the process`() {
        var random = FastRandom(seed: 7)
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0..<40, using: &random)).map { _ in
                // Small numbers, so that lengths and tags are sometimes valid.
                Bool.random(using: &random)
                    ? UInt8.random(in: 0..<20, using: &random) : .random(in: 0...255, using: &random)
            }
            _ = TracesAnswer(bytes)
        }
    }
}
