import Reactor
import Synchronization
import Testing

@Suite("timers fire once, at the moment they were set to last")
struct LoopTimerTests {
    /// What fired, in order.
    private final class Record: Sendable {
        private let names = Mutex<[String]>([])
        func add(_ name: String) { names.withLock { $0.append(name) } }
        var all: [String] { names.withLock { $0 } }
    }

    /// Keeps timers alive on their loop.
    private final class Holder { var timers: [LoopTimer] = [] }

    @Test func `in the order of their moments, whatever the order they were set in`() async throws {
        let loop = try EventLoop.start(name: "timers")
        defer { loop.stop() }
        let record = Record()
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            loop.execute {
                let holder = Holder()
                for delay in [30, 10, 20] {
                    let timer = LoopTimer(on: loop) { record.add("\(delay)") }
                    timer.schedule(after: .milliseconds(delay))
                    holder.timers.append(timer)
                }
                let last = LoopTimer(on: loop) {
                    holder.timers = []
                    done.resume()
                }
                last.schedule(after: .milliseconds(40))
                holder.timers.append(last)
            }
        }
        #expect(record.all == ["10", "20", "30"])
    }

    @Test func `moved, cancelled and freed ones do not fire at their old moment`() async throws {
        let loop = try EventLoop.start(name: "timers")
        defer { loop.stop() }
        let record = Record()
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            loop.execute {
                let holder = Holder()
                let later = LoopTimer(on: loop) { record.add("later") }
                later.schedule(after: .milliseconds(5))
                later.schedule(after: .milliseconds(30))
                let sooner = LoopTimer(on: loop) { record.add("sooner") }
                sooner.schedule(after: .seconds(3600))
                sooner.schedule(after: .milliseconds(10))
                let cancelled = LoopTimer(on: loop) { record.add("cancelled") }
                cancelled.schedule(after: .milliseconds(5))
                cancelled.cancel()
                LoopTimer(on: loop) { record.add("freed") }.schedule(after: .milliseconds(5))
                let last = LoopTimer(on: loop) {
                    holder.timers = []
                    done.resume()
                }
                last.schedule(after: .milliseconds(60))
                holder.timers = [later, sooner, cancelled, last]
            }
        }
        // A loop that was held up past both may take them in either order.
        #expect(record.all.sorted() == ["later", "sooner"])
    }
}
