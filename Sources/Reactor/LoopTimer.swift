/// One deadline on an event loop, made once and moved often.
///
/// Moving the deadline later writes one field only. The loop wakes up at the earlier time, and then waits again. Used
/// and freed on the loop's thread only. Freeing a timer cancels it, so `action` may capture its owner unowned.
public final class LoopTimer {
    private let loop: EventLoop
    private let state: TimerState

    public init(on loop: EventLoop, action: @escaping () -> Void) {
        self.loop = loop
        state = TimerState(action)
    }

    // The queue may hold the state longer than the timer lives.
    deinit {
        state.due = nil
        state.action = nil
    }

    /// Fires once, in the loop's first turn after `time`. A timer set while timers fire waits for the next turn.
    public func schedule(at time: LoopTime) {
        state.due = time
        if let queued = state.queued, queued <= time { return }
        state.queued = time
        loop.timers.insert(state, at: time)
    }

    public func schedule(after duration: Duration) { schedule(at: loop.now + duration) }

    public func cancel() { state.due = nil }
}

final class TimerState {
    fileprivate var action: (() -> Void)?
    /// Time to fire; `nil` when not armed.
    fileprivate var due: LoopTime?
    /// Time of the timer's entry in the queue; `nil` when not queued.
    fileprivate var queued: LoopTime?

    fileprivate init(_ action: @escaping () -> Void) { self.action = action }

    /// Runs the action, unless the timer was moved or cancelled.
    func fire(_ now: LoopTime) {
        guard let due, due <= now else { return }
        self.due = nil
        action?()
    }
}

/// A binary heap of timers by time. Outdated entries stay until their time.
struct TimerQueue {
    private struct Entry {
        let time: LoopTime
        let timer: TimerState
    }
    private var heap: [Entry] = []

    var next: LoopTime? { heap.first?.time }

    mutating func insert(_ timer: TimerState, at time: LoopTime) {
        heap.append(Entry(time: time, timer: timer))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].time < heap[parent].time else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// Moves the due timers from the queue to `found`. Queues a timer again that was moved to a later time.
    mutating func popDue(_ now: LoopTime, into found: inout [TimerState]) {
        while let first = heap.first, first.time <= now {
            removeFirst()
            let timer = first.timer
            // Outdated: the timer was moved to an earlier time, and got another entry.
            guard timer.queued == first.time else { continue }
            timer.queued = nil
            guard let due = timer.due else { continue }
            guard due <= now else {
                timer.queued = due
                insert(timer, at: due)
                continue
            }
            found.append(timer)
        }
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
