import Reactor

/// Times of the steps of one exchange, in the precision of the loop's turns. Reads no clock. No I/O.
///
/// The waits for tokens are summed. All other times are those of the last attempt, whose answer the program gets.
struct ExchangeTimes {
    /// Whether the latest attempt used HTTP/2. Set only if a span is recorded.
    var isHTTP2 = false
    /// Start of the last attempt, when it asked for a connection.
    private(set) var asked: LoopTime?
    private(set) var connected: LoopTime?
    private(set) var answered: LoopTime?
    /// End of the last wait for a token.
    private(set) var tokenCame: LoopTime?
    private var waitBegan: LoopTime?
    /// Sum of the completed waits for tokens; `nil` if no wait has begun.
    private var waited: Duration?
    /// Whether the last attempt's connection had served an earlier request; `nil` without a connection.
    private(set) var isReused: Bool?

    // MARK: Events

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

    /// Notes the arrival of the final answer's head.
    mutating func answer(_ now: LoopTime) { answered = now }

    // MARK: Durations

    /// - Parameter now: time up to which a wait under way counts.
    func tokenWait(_ now: LoopTime) -> Duration? { waited.map { $0 + (waitBegan.map { now.since($0) } ?? .zero) } }

    /// Wait of the last attempt for its connection; `nil` without one, or if the pool had an idle one at once.
    var connect: Duration? {
        guard let asked, let connected, isReused == false || connected != asked else { return nil }
        return connected.since(asked)
    }

    /// Time from the connection to the final answer's head.
    var firstByte: Duration? {
        guard let connected, let answered else { return nil }
        return answered.since(connected)
    }
}
