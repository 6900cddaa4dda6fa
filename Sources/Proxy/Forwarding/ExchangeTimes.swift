import Reactor

/// Times of the steps of one exchange, with the resolution of the loop's turns: no clock is read. No I/O.
///
/// Sums the waits for tokens. All other times are those of the last attempt, whose answer the client gets.
struct ExchangeTimes {
    /// Whether the latest attempt used HTTP/2. Set only if a span is recorded.
    var isHTTP2 = false
    private(set) var asked: LoopTime?
    private(set) var connected: LoopTime?
    private(set) var answered: LoopTime?
    /// End of the last wait for a token.
    private(set) var tokenCame: LoopTime?
    private var waitBegan: LoopTime?
    /// Sum of the waits that are over; `nil`: none has begun.
    private var waited: Duration?
    /// Whether the last try's connection had served others; `nil`: no connection.
    private(set) var isReused: Bool?

    // MARK: What happens

    mutating func tokenAwaited(_ now: LoopTime) {
        waitBegan = waitBegan ?? now
        waited = waited ?? .zero
    }

    mutating func tokenCame(_ now: LoopTime) {
        waited = tokenWait(now)
        tokenCame = now
        waitBegan = nil
    }

    mutating func ask(_ now: LoopTime) {
        asked = now
        (connected, answered, isReused) = (nil, nil, nil)
    }

    mutating func connect(_ now: LoopTime, isReused: Bool) {
        connected = now
        self.isReused = isReused
    }

    /// The head of the final answer has come.
    mutating func answer(_ now: LoopTime) { answered = now }

    // MARK: What comes of it

    /// - Parameter now: end of a wait that still lasts.
    func tokenWait(_ now: LoopTime) -> Duration? { waited.map { $0 + (waitBegan.map { now.since($0) } ?? .zero) } }

    /// `nil` for an idle connection, or none.
    var connect: Duration? {
        guard let asked, let connected, isReused == false || connected != asked else { return nil }
        return connected.since(asked)
    }

    /// Time from the connection to the answer's head.
    var firstByte: Duration? {
        guard let connected, let answered else { return nil }
        return answered.since(connected)
    }
}
