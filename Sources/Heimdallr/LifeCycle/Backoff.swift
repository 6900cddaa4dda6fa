/// Wait after the n-th failure in a row: full jitter below a ceiling that doubles up to a cap.
struct Backoff: Sendable {
    let base: Duration
    let cap: Duration

    /// Faults that pass by themselves.
    static let transient = Backoff(base: .seconds(1), cap: .seconds(30))
    /// For faults that an operator has to repair. Frequent requests would only fill the server's log.
    static let permanent = Backoff(base: .seconds(10), cap: .seconds(300))
    /// Tokens that the resource refuses on their first use.
    static let rejection = Backoff(base: .seconds(4), cap: .seconds(300))

    /// - Parameter attempt: 1 for the first failure.
    func delay(attempt: Int, random: Double) -> Duration {
        ceiling(attempt: attempt) * random
    }

    func ceiling(attempt: Int) -> Duration {
        min(cap, base * (1 << min(max(attempt, 1) - 1, 16)))
    }
}
