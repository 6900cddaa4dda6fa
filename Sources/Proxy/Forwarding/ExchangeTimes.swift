import Reactor

/// When the steps of one exchange were, by the turns of the loop in which they came about: no clock is asked. A value
/// without I/O.
///
/// Waits for tokens are added up. The rest is of the last try, whose answer the client gets.
struct ExchangeTimes {
    private static let never = LoopTime(nanoseconds: 0)

    /// The upstream was given the request.
    private(set) var asked = Self.never
    private var connected = Self.never
    private var answered = Self.never
    private var waitBegan = Self.never
    private var waitEnded = Self.never
    private var waited: UInt64 = 0
    private var hasWaited = false
    /// The last try's connection had served others; `nil`: it had none.
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

    /// A try begins.
    mutating func ask(_ now: LoopTime) {
        asked = now
        connected = Self.never
        answered = Self.never
        isReused = nil
    }

    /// There is a connection for it.
    mutating func connect(_ now: LoopTime, isReused: Bool) {
        connected = now
        self.isReused = isReused
    }

    /// The head of its answer is there; interim ones don't count.
    mutating func answer(_ now: LoopTime) { answered = now }

    // MARK: What comes of it

    /// - Parameter now: what is waited for still counts until then.
    func tokenWait(_ now: LoopTime) -> Duration? {
        guard hasWaited else { return nil }
        return .nanoseconds(Int64(clamping: waited + tokenWaitUnderWay(now)))
    }

    private func tokenWaitUnderWay(_ now: LoopTime) -> UInt64 {
        waitBegan == Self.never || now <= waitBegan ? 0 : now.nanoseconds - waitBegan.nanoseconds
    }

    /// `nil`: a kept-alive connection was there at once, or none came.
    var connect: Duration? {
        guard let isReused, !isReused || connected != asked else { return nil }
        return connected.since(asked)
    }

    // For events of a span.
    var tokenCameAt: LoopTime? { waitEnded == Self.never ? nil : waitEnded }
    var connectedAt: LoopTime? { connected == Self.never ? nil : connected }
    var answeredAt: LoopTime? { answered == Self.never ? nil : answered }

    /// From when there was a connection.
    var firstByte: Duration? { answered == Self.never ? nil : answered.since(connected) }
}
