import Testing

@testable import Proxy

@Suite("what waits for the collector, and for how long")
struct WaitingTests {
    @Test func `spans wait in their order, bounded in number and in bytes`() {
        var waiting = WaitingSpans<Int>(mostElements: 5, mostBytes: 100)
        for number in 0..<5 {
            let fits = waiting.add(number, size: 10)
            #expect(fits)
        }
        var fits = waiting.add(5, size: 10)
        #expect(!fits && waiting.count == 5 && waiting.bytes == 50)
        #expect(waiting.take(atMost: 2) == [0, 1])
        #expect(waiting.bytes == 30)
        fits = waiting.add(6, size: 71)
        #expect(!fits)
        fits = waiting.add(7, size: 70)
        #expect(fits)
        #expect(waiting.take(atMost: 9) == [2, 3, 4, 7])
        #expect(waiting.isEmpty && waiting.bytes == 0)
        #expect(waiting.take(atMost: 9).isEmpty)
    }

    @Test func `a failure of a collector is told by whether it may be asked again`() {
        for status in [429, 502, 503, 504] {
            var patience = ExportRetry()
            guard case .again(let pause) = patience.ended(.answered(status: status, retryAfter: nil), random: 0.5)
            else {
                Issue.record("\(status) was given up at once")
                continue
            }
            #expect(pause == .milliseconds(750))
        }
        for status in [100, 301, 307, 400, 401, 403, 404, 408, 413, 500, 501, 505] {
            var patience = ExportRetry()
            guard case .drop = patience.ended(.answered(status: status, retryAfter: .seconds(1)), random: 0.5) else {
                Issue.record("\(status) was tried again")
                continue
            }
        }
        var patience = ExportRetry()
        #expect(patience.ended(.unusable, random: 0) == .drop(pause: .milliseconds(500)))
    }

    @Test func `pauses double, and a batch is given up after some of them`() {
        var patience = ExportRetry()
        let pauses = (1..<ExportRetry.attempts).map { _ in patience.ended(.unreachable, random: 0) }
        #expect(pauses == [0.5, 1, 2, 4].map { .again(after: .seconds($0)) })
        #expect(patience.ended(.unreachable, random: 0) == .drop(pause: .seconds(8)))
        // The next batch begins where this one ended.
        #expect(patience.ended(.unreachable, random: 1) == .again(after: .seconds(30)))
        #expect(patience.ended(.answered(status: 200, retryAfter: nil), random: 0) == .done)
        #expect(patience.ended(.unreachable, random: 0) == .again(after: .milliseconds(500)))
    }

    @Test func `a collector's own Retry-After counts, within reason`() {
        func step(_ wait: Duration) -> ExportRetry.Step {
            var patience = ExportRetry()
            return patience.ended(.answered(status: 429, retryAfter: wait), random: 0)
        }
        #expect(step(.seconds(7)) == .again(after: .seconds(7)))
        #expect(step(.zero) == .again(after: .zero))
        #expect(step(.seconds(61)) == .drop(pause: .seconds(61)))
        #expect(step(.seconds(9_999_999_999)) == .drop(pause: .seconds(300)))
    }
}
