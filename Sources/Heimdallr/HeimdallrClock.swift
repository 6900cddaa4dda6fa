internal import Cryptography

/// Time and chance, replaceable in tests. Deadlines are on `ContinuousClock`, which counts suspension and can't be set.
/// The closures are called on any thread.
public struct HeimdallrClock: Sendable {
    /// The time now, for everything but records and HTTP dates.
    public var now: @Sendable () -> ContinuousClock.Instant
    /// The calendar's time now, in seconds since 1970-01-01T00:00:00Z: for records, id tokens and HTTP dates only.
    public var wallClock: @Sendable () -> Int64
    /// Returns at the given instant; throws `CancellationError` when the task is cancelled before.
    public var sleep: @Sendable (ContinuousClock.Instant) async throws -> Void
    /// A number from 0 up to, but not including, 1; spreads retries over time.
    public var random: @Sendable () -> Double

    /// A clock of your own, for tests.
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

/// The time and the source of chance for one step of a life cycle.
struct Moment: Sendable {
    let now: ContinuousClock.Instant
    /// Calendar time in seconds since 1970.
    let wallClock: Int64
    /// A number from 0 up to, but not including, 1.
    let random: @Sendable () -> Double
}

extension Moment {
    /// Reads the wall clock first: a stop in between shortens the life in a record and never prolongs it.
    init(_ clock: HeimdallrClock) {
        wallClock = clock.wallClock()
        now = clock.now()
        random = clock.random
    }
}
