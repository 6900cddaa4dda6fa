/// Times of the attempts to connect to one of several addresses (RFC 8305, section 5): the next one begins 250 ms after
/// the last, and at once after a failure. With little time, they follow each other faster, so that each address has its
/// attempt. No I/O.
public struct AttemptTimes {
    private let count: Int
    private let delay: Duration
    private let deadline: LoopTime
    private var begun = 0
    private var due: LoopTime

    public init(count: Int, now: LoopTime, deadline: LoopTime) {
        self.count = count
        self.deadline = deadline
        delay = min(.milliseconds(250), deadline.since(now) / max(count, 1))
        due = now
    }

    /// Returns the index of the address to begin with now; `nil` if none is due.
    public mutating func next(_ now: LoopTime) -> Int? {
        guard begun < count, now >= due else { return nil }
        due = now + delay
        begun += 1
        return begun - 1
    }

    /// Notes that an attempt has failed.
    public mutating func failed(_ now: LoopTime) { due = now }

    /// Whether an attempt for each address has begun.
    public var isLast: Bool { begun == count }

    /// Time of the next attempt, or the deadline.
    public var wake: LoopTime { isLast ? deadline : min(due, deadline) }
}
