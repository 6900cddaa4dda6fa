import Reactor

/// Times of the steps of one exchange, with the resolution of the loop's turns: no clock is read. No I/O.
///
/// Sums the waits for tokens. All other times are those of the last attempt, whose answer the client gets.
struct ExchangeTimes {
    /// Whether the latest attempt used HTTP/2. Set only if a span is recorded.
    var isHTTP2 = false
    private static let never = LoopTime(nanoseconds: 0)

    private(set) var asked = Self.never
    private var connected = Self.never
    private var answered = Self.never
    private var waitBegan = Self.never
    private var waitEnded = Self.never
    private var waited: UInt64 = 0
    private var hasWaited = false
    /// Whether the last try's connection had served others; `nil`: no connection.
    private(set) var isReused: Bool?

    // MARK: What happens

    mutating func tokenAwaited(_ now: LoopTime) {
        if waitBegan == Self.never { waitBegan = now }
        hasWaited = true
    }

    mutating func tokenCame(_ now: LoopTime) {
        waited += tokenWaitUnderWay(now)
        waitEnded = now
        waitBegan = Self.never
    }

    mutating func ask(_ now: LoopTime) {
        asked = now
        connected = Self.never
        answered = Self.never
        isReused = nil
    }

    mutating func connect(_ now: LoopTime, isReused: Bool) {
        connected = now
        self.isReused = isReused
    }

    /// The head of the final answer has come.
    mutating func answer(_ now: LoopTime) { answered = now }

    // MARK: What comes of it

    /// - Parameter now: end of a wait that still lasts.
    func tokenWait(_ now: LoopTime) -> Duration? {
        guard hasWaited else { return nil }
        return .nanoseconds(Int64(clamping: waited + tokenWaitUnderWay(now)))
    }

    private func tokenWaitUnderWay(_ now: LoopTime) -> UInt64 {
        waitBegan == Self.never || now <= waitBegan ? 0 : now.nanoseconds - waitBegan.nanoseconds
    }

    /// `nil` for an idle connection, or none.
    var connect: Duration? {
        guard let isReused, !isReused || connected != asked else { return nil }
        return connected.since(asked)
    }

    var tokenCameAt: LoopTime? { waitEnded == Self.never ? nil : waitEnded }
    var connectedAt: LoopTime? { connected == Self.never ? nil : connected }
    var answeredAt: LoopTime? { answered == Self.never ? nil : answered }

    /// Time from the connection to the answer's head.
    var firstByte: Duration? { answered == Self.never ? nil : answered.since(connected) }
}
