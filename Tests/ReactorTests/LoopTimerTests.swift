import Reactor
import TestSupport
import Testing

@Suite("timers fire once, at the moment they were set to last")
struct LoopTimerTests {
    /// Keeps timers alive on their loop.
    private final class LiveTimers { var timers: [LoopTimer] = [] }

    @Test func `timers of a loop fire in the order of their moments, whatever the order they were set in`() async throws
    {
        let loop = try EventLoop.start(name: "timers")
        defer { loop.stop() }
        let fired = Recorder<String>()
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            loop.execute {
                let live = LiveTimers()
                for delay in [30, 10, 20] {
                    let timer = LoopTimer(on: loop) { fired.append("\(delay)") }
                    timer.schedule(after: .milliseconds(delay))
                    live.timers.append(timer)
                }
                let last = LoopTimer(on: loop) {
                    live.timers = []
                    done.resume()
                }
                last.schedule(after: .milliseconds(40))
                live.timers.append(last)
            }
        }
        #expect(fired.all == ["10", "20", "30"])
    }

    @Test func `timers that were moved, cancelled or freed do not fire at their old moment`() async throws {
        let loop = try EventLoop.start(name: "timers")
        defer { loop.stop() }
        let fired = Recorder<String>()
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            loop.execute {
                let live = LiveTimers()
                let later = LoopTimer(on: loop) { fired.append("later") }
                later.schedule(after: .milliseconds(5))
                later.schedule(after: .milliseconds(30))
                let sooner = LoopTimer(on: loop) { fired.append("sooner") }
                sooner.schedule(after: .seconds(3600))
                sooner.schedule(after: .milliseconds(10))
                let cancelled = LoopTimer(on: loop) { fired.append("cancelled") }
                cancelled.schedule(after: .milliseconds(5))
                cancelled.cancel()
                LoopTimer(on: loop) { fired.append("freed") }.schedule(after: .milliseconds(5))
                let last = LoopTimer(on: loop) {
                    live.timers = []
                    done.resume()
                }
                last.schedule(after: .milliseconds(60))
                live.timers = [later, sooner, cancelled, last]
            }
        }
        // A loop that was held up past both may take them in either order.
        #expect(fired.all.sorted() == ["later", "sooner"])
    }
}
