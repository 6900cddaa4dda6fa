import Reactor
import Testing

@Suite struct WallTimeTests {
    @Test func `a time goes on and back over the ends of seconds`() {
        let time = WallTime(seconds: 10, nanoseconds: 900_000_000)
        #expect(time + .milliseconds(200) == WallTime(seconds: 11, nanoseconds: 100_000_000))
        #expect(time + .seconds(3) == WallTime(seconds: 13, nanoseconds: 900_000_000))
        #expect(time - .milliseconds(950) == WallTime(seconds: 9, nanoseconds: 950_000_000))
        #expect(time - .milliseconds(1_900) == WallTime(seconds: 9, nanoseconds: 0))
        #expect(time + .milliseconds(100) == WallTime(seconds: 11, nanoseconds: 0))
        #expect(time - .zero == time)
    }
}
