import Glibc
import TestSupport
import Testing

@testable import Reactor

@Suite("a loop knows how late it is", .timeLimit(.minutes(1)))
struct LoopLagTests {
    private func at(_ milliseconds: UInt64) -> LoopTime { LoopTime(nanoseconds: milliseconds * 1_000_000) }

    @Test func `late turns are counted by size, once for each moment`() {
        var lag = LoopLag()
        lag.woke(at: at(1000), hasEvents: true)
        lag.woke(at: at(1050), hasEvents: true)
        #expect(lag.due == at(1100))
        lag.woke(at: at(1101), hasEvents: false)
        lag.woke(at: at(5000), hasEvents: true)
        lag.woke(at: at(5400), hasEvents: true)
        lag.woke(at: at(65_400), hasEvents: false)
        #expect(lag.counts == [1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1])
        #expect(lag.nanoseconds == (1 + 300 + 59_900) * 1_000_000)
    }

    @Test func `a loop without events does not wake up to measure`() {
        var lag = LoopLag()
        lag.woke(at: at(1000), hasEvents: false)
        #expect(lag.due.nanoseconds == .max)
        lag.woke(at: at(1000), hasEvents: true)
        lag.woke(at: at(1100), hasEvents: false)
        #expect(lag.due.nanoseconds == .max)
        #expect(lag.counts.reduce(0, +) == 1)
    }

    @Test func `a loop that is held up shows it`() async throws {
        let loop = try EventLoop.start(name: "held")
        defer { loop.stop() }
        // It may run before the loop first looks for events.
        try await loop.run {}
        // Time itself: a late look is late by this.
        _ = try await loop.run { usleep(280_000) }
        let lag = try await eventually("a late look") {
            let lag = try await loop.run { loop.lag }
            return lag.nanoseconds > 200_000_000 ? lag : nil
        }
        #expect(lag.counts[...5].reduce(0, +) < lag.counts.reduce(0, +))
    }

    @Test func `an idle loop looks once more, and sleeps`() async throws {
        let loop = try EventLoop.start(name: "idle")
        defer { loop.stop() }
        try await loop.run {}
        try await loop.run {}
        // Time itself: two and a half intervals, each of which would count a further look.
        try await Task.sleep(for: .milliseconds(250))
        #expect(try await loop.run { loop.lag }.counts.reduce(0, +) == 1)
    }
}
