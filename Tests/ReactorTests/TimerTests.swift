import Reactor
import Synchronization
import TestSupport
import Testing

@testable import Reactor

@Suite("timers fire once, in their order, never early", .timeLimit(.minutes(1)))
struct TimerTests {
    private func withLoop<Value: Sendable>(_ body: (EventLoop) async throws -> Value) async throws -> Value {
        let loop = try EventLoop.start(name: "timers")
        defer { loop.stop() }
        return try await body(loop)
    }

    @Test func `thousands of timers fire in order, and none before its moment`() async throws {
        try await withLoop { loop in
            let log = Recorder<(due: LoopTime, at: LoopTime)>()
            try await loop.run {
                var random = SplitMix(state: 1)
                for _ in 0..<5000 {
                    let due = loop.now + .microseconds(Int(random.next() % 200_000))
                    Timers.keep(on: loop) { log.append((due, loop.now)) }.schedule(at: due)
                }
            }
            try await eventually("all of them") { log.all.count == 5000 }
            #expect(log.all.allSatisfy { $0.due <= $0.at })
            #expect(zip(log.all, log.all.dropFirst()).allSatisfy { $0.due <= $1.due })
        }
    }

    @Test func `a timer can be moved, cancelled and armed again`() async throws {
        try await withLoop { loop in
            let log = Recorder<String>()
            try await loop.run {
                func timer(_ name: String) -> LoopTimer { Timers.keep(on: loop) { log.append(name) } }
                let later = timer("moved later")
                later.schedule(after: .milliseconds(10))
                later.schedule(after: .milliseconds(120))
                let earlier = timer("moved earlier")
                earlier.schedule(after: .seconds(3600))
                earlier.schedule(after: .milliseconds(40))
                let cancelled = timer("cancelled")
                cancelled.schedule(after: .milliseconds(20))
                cancelled.cancel()
                cancelled.cancel()
                let again = timer("armed again")
                again.schedule(after: .milliseconds(20))
                again.cancel()
                again.schedule(after: .milliseconds(80))
                let toAndFro = timer("to and fro")
                for milliseconds in [500, 10, 300, 20, 200, 60] {
                    toAndFro.schedule(after: .milliseconds(milliseconds))
                }
                timer("at once").schedule(after: .zero)
                timer("past").schedule(after: .seconds(-5))
            }
            try await eventually("the last one") { log.all.last == "moved later" }
            #expect(Set(log.all.prefix(2)) == ["at once", "past"])
            #expect(log.all.dropFirst(2) == ["moved earlier", "to and fro", "armed again", "moved later"])
        }
    }

    @Test func `a timer that arms itself fires again and again`() async throws {
        try await withLoop { loop in
            let log = Recorder<Int>()
            try await loop.run {
                Timers.keepRepeating(on: loop, every: .milliseconds(1), times: 50) { log.append($0) }
            }
            try await eventually("fifty") { log.all.count == 50 }
            _ = try await loop.run { 0 }
            #expect(log.all == Array(1...50))
        }
    }

    @Test func `a timer that is freed does not fire, and releases its action`() async throws {
        try await withLoop { loop in
            let log = Recorder<Int>()
            try await loop.run {
                let canary = Canary(log: log)
                let timer = LoopTimer(on: loop) { withExtendedLifetime(canary) { log.append(1) } }
                timer.schedule(after: .milliseconds(20))
            }
            #expect(log.all == [-1])
            // A later timer has its turn.
            let timers = try await loop.run {
                let timer = LoopTimer(on: loop) { log.append(2) }
                timer.schedule(after: .milliseconds(30))
                return LoopBound(timer, on: loop)
            }
            try await eventually("the later one") { log.all == [-1, 2] }
            withExtendedLifetime(timers) {}
        }
    }

    @Test func `a timer that is freed by another's action at the same moment does not fire`() async throws {
        try await withLoop { loop in
            let log = Recorder<Int>()
            try await loop.run {
                let due = loop.now + .milliseconds(10)
                let victims = Victims()
                for number in 0..<10 {
                    let timer = LoopTimer(on: loop) {
                        log.append(number)
                        victims.timers = []
                    }
                    timer.schedule(at: due)
                    victims.timers.append(timer)
                }
            }
            try await eventually("one") { !log.all.isEmpty }
            _ = try await loop.run { 0 }
            #expect(log.all.count == 1)
        }
    }

    @Test func `a far future does not overflow, and the loop sleeps till the nearest`() async throws {
        try await withLoop { loop in
            let log = Recorder<Int>()
            try await loop.run {
                Timers.keep(on: loop) { log.append(2) }.schedule(after: .seconds(Int64.max / 2))
                Timers.keep(on: loop) { log.append(3) }.schedule(at: LoopTime(nanoseconds: .max))
                Timers.keep(on: loop) { log.append(1) }.schedule(after: .milliseconds(20))
            }
            try await eventually("the near one") { log.all == [1] }
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `the queue of timers behaves as its model`(seed: UInt64) throws {
        let loop = try EventLoop()
        var random = SplitMix(state: seed)
        let timers = (0..<50).map { _ in TimerUnderTest(loop) }
        var now: UInt64 = 1000
        for _ in 0..<3000 {
            let timer = timers[Int(random.next() % 50)]
            switch random.next() % 6 {
            case 0...2:
                let due = now + random.next() % 100
                timer.timer?.schedule(at: LoopTime(nanoseconds: due))
                timer.due = due
            case 3:
                timer.timer?.cancel()
                timer.due = nil
            default:
                now += random.next() % 20
                var due: [TimerState] = []
                loop.timers.popDue(LoopTime(nanoseconds: now), into: &due)
                for timer in due { timer.fire(LoopTime(nanoseconds: now)) }
                for timer in timers {
                    let shouldFire = timer.due.map { $0 <= now } ?? false
                    #expect(timer.fired == (shouldFire ? 1 : 0))
                    if shouldFire { timer.due = nil }
                    timer.fired = 0
                }
                let nearest = timers.compactMap(\.due).min()
                if let nearest, let next = loop.timers.next { #expect(next.nanoseconds <= nearest) }
                if nearest != nil { #expect(loop.timers.next != nil) }
            }
        }
    }

    // MARK: Time

    @Test func `durations in whole milliseconds round up and saturate`() {
        let rows: [(Duration, Int)] = [
            (.zero, 0), (.seconds(-1), 0), (.nanoseconds(1), 1), (.milliseconds(1), 1), (.nanoseconds(1_000_001), 2),
            (.seconds(1), 1000), (.seconds(Int64.max), Int(Int32.max)),
        ]
        for (duration, milliseconds) in rows { #expect(duration.wholeMilliseconds == milliseconds) }
        #expect(Duration.seconds(Int64.max).wholeNanoseconds == .max)
        #expect(Duration.seconds(Int64.min / 2).wholeNanoseconds == .min)
        #expect((LoopTime(nanoseconds: 5) + .seconds(Int64.max)).nanoseconds >= UInt64(Int64.max))
        #expect(LoopTime(nanoseconds: 5).since(LoopTime(nanoseconds: 7)) == .zero)
        #expect(LoopTime(nanoseconds: 7).since(LoopTime(nanoseconds: 5)) == .nanoseconds(2))
    }
}

private final class Victims { var timers: [LoopTimer] = [] }

private final class TimerUnderTest {
    var timer: LoopTimer?
    var due: UInt64?
    var fired = 0

    init(_ loop: EventLoop) { timer = LoopTimer(on: loop) { [unowned self] in fired += 1 } }
}

/// Timers that live until they have fired.
private enum Timers {
    final class Reference { var timer: LoopTimer? }

    static func keep(on loop: EventLoop, _ action: @escaping () -> Void) -> LoopTimer {
        let reference = Reference()
        let timer = LoopTimer(on: loop) {
            action()
            reference.timer = nil
        }
        reference.timer = timer
        return timer
    }

    static func keepRepeating(on loop: EventLoop, every: Duration, times: Int, _ action: @escaping (Int) -> Void) {
        let reference = Reference()
        var count = 0
        let timer = LoopTimer(on: loop) {
            count += 1
            action(count)
            if count < times { reference.timer?.schedule(after: every) } else { reference.timer = nil }
        }
        reference.timer = timer
        timer.schedule(after: every)
    }
}
