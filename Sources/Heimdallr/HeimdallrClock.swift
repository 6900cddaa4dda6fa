internal import Cryptography

/// Time and random numbers, which tests can replace. Deadlines use `ContinuousClock`, which counts suspension and can't
/// be set. The closures are called on any thread.
public struct HeimdallrClock: Sendable {
    /// Returns the current time, for deadlines and lifetimes.
    public var now: @Sendable () -> ContinuousClock.Instant
    /// Returns the calendar time in seconds since 1970-01-01T00:00:00Z, only for records, id tokens and HTTP dates.
    public var wallClock: @Sendable () -> Int64
    /// Returns at the given instant. Throws `CancellationError` if the task is cancelled before.
    public var sleep: @Sendable (ContinuousClock.Instant) async throws -> Void
    /// Returns a number from 0 up to, but not including, 1. Spreads retries over time.
    public var random: @Sendable () -> Double

    /// Makes your own clock, for tests.
    public init(
        now: @escaping @Sendable () -> ContinuousClock.Instant, wallClock: @escaping @Sendable () -> Int64,
        sleep: @escaping @Sendable (ContinuousClock.Instant) async throws -> Void,
        random: @escaping @Sendable () -> Double
    ) {
        self.now = now
        self.wallClock = wallClock
        self.sleep = sleep
        self.random = random
    }

    /// The machine's clocks and random numbers.
    public static let system = HeimdallrClock(
        now: { ContinuousClock.now }, wallClock: { WallClock.now() },
        sleep: { try await ContinuousClock().sleep(until: $0) }, random: { Double.random(in: 0..<1) })
}

/// The time and the random numbers for one step of a life cycle.
struct Moment: Sendable {
    let now: ContinuousClock.Instant
    /// Calendar time in seconds since 1970.
    let wallClock: Int64
    /// Returns a number from 0 up to, but not including, 1.
    let random: @Sendable () -> Double
}

extension Moment {
    /// Reads the wall clock first. A pause between both readings can then only shorten the lifetime in a record.
    init(_ clock: HeimdallrClock) {
        wallClock = clock.wallClock()
        now = clock.now()
        random = clock.random
    }
}
