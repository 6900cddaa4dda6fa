import FileSystem
import Testing

@Suite("the last good reading of a value")
struct LastGoodTests {
    private typealias Good = LastGood<Int, String>

    @Test func `a fault is news once, another fault again, and the last good value stays`() {
        var value = Good()
        #expect(value.fail("away") == .failed("away", hasValue: false, isNew: true))
        #expect(value.take(.init(1)) == .taken(isRecovery: true))
        #expect(value.fail("away") == .failed("away", hasValue: true, isNew: true))
        #expect(value.fail("away") == .failed("away", hasValue: true, isNew: false))
        #expect(value.fail("damaged") == .failed("damaged", hasValue: true, isNew: true))
        #expect(value.current() == 1)
        #expect(value.take(.init(1), isSame: true) == .taken(isRecovery: true))
        #expect(value.take(.init(1), isSame: true) == .unchanged)
        #expect(value.generation == 1)
        #expect(value.take(.init(2)) == .taken(isRecovery: false))
        #expect(value.generation == 2)
    }

    @Test func `a value is not used after its end, and the same value may last longer`() {
        var value = Good()
        _ = value.take(.init(1, ends: .now - .seconds(1)))
        #expect(value.current() == nil)
        #expect(value.value == 1)
        _ = value.take(.init(1, ends: .now + .seconds(3600)), isSame: true)
        #expect(value.current() == 1)
        #expect(value.generation == 1)
    }

    @Test func `the pause doubles with each failure up to its limit, and a good reading says its own`() {
        var value = Good()
        let retry = (first: Duration.seconds(2), most: Duration.seconds(300))
        #expect(value.pause(retry: retry) == nil)
        var pauses: [Duration] = []
        for _ in 0..<9 {
            _ = value.fail("away")
            if let pause = value.pause(retry: retry) { pauses.append(pause) }
        }
        #expect(pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300].map { .seconds($0) })
        #expect(value.pause(retry: nil) == nil)
        for _ in 0..<1000 { _ = value.fail("away") }
        #expect(value.pause(retry: retry) == .seconds(300))
        _ = value.take(.init(1, again: .seconds(60)))
        #expect(value.pause(retry: retry) == .seconds(60))
    }
}
