/// One deadline on an event loop, made once and moved often.
///
/// Moving it later, which is what a connection does with every request, writes one field: the loop looks again when
/// the earlier moment comes. Used on the loop's thread only. `action` is kept until the timer is freed, so it must hold
/// its owner weakly or unowned.
public final class LoopTimer {
    private let loop: EventLoop
    fileprivate let action: () -> Void
    /// When it is to fire; `nil`: not armed.
    public private(set) var due: LoopTime?
    /// Where its entry stands in the loop's queue; `nil`: nowhere.
    fileprivate var queued: LoopTime?

    public init(on loop: EventLoop, action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
    }

    /// Fires once, at the first look of the loop past `time`.
    public func schedule(at time: LoopTime) {
        due = time
        if let queued, queued <= time { return }
        queued = time
        loop.timers.insert(self, at: time)
    }

    public func schedule(after duration: Duration) { schedule(at: loop.now + duration) }

    public func cancel() { due = nil }
}

/// Binary heap of moments. Entries that were overtaken stay until their moment comes.
struct TimerQueue {
    private struct Entry {
        let time: LoopTime
        let timer: LoopTimer
    }
    private var heap: [Entry] = []

    /// When the loop has to look next.
    var next: LoopTime? { heap.first?.time }

    mutating func insert(_ timer: LoopTimer, at time: LoopTime) {
        heap.append(Entry(time: time, timer: timer))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].time < heap[parent].time else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// The action of one timer that is due, or `nil` when none is.
    mutating func popDue(_ now: LoopTime) -> (() -> Void)? {
        while let first = heap.first, first.time <= now {
            removeFirst()
            let timer = first.timer
            // An entry that a nearer one replaced says nothing any more.
            guard timer.queued == first.time else { continue }
            timer.queued = nil
            guard let due = timer.due else { continue }
            guard due <= now else {
                timer.queued = due
                insert(timer, at: due)
                continue
            }
            timer.cancel()
            return timer.action
        }
        return nil
    }

    private mutating func removeFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].time < heap[least].time {
                least = child
            }
            guard least != parent else { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}
