internal import Cryptography

/// Time and chance, so that tests can hold them. Deadlines are on `ContinuousClock`, which counts suspension and knows
/// no summer time.
public struct HeimdallrClock: Sendable {
    public var now: @Sendable () -> ContinuousClock.Instant
    /// Seconds since 1970-01-01T00:00:00Z: for records and HTTP dates only.
    public var wallClock: @Sendable () -> Int64
    /// Returns at that instant, or throws `CancellationError`.
    public var sleep: @Sendable (ContinuousClock.Instant) async throws -> Void
    /// 0 ..< 1, for jitter.
    public var random: @Sendable () -> Double

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

    public static let system = HeimdallrClock(
        now: { ContinuousClock.now }, wallClock: { WallClock.now() },
        sleep: { try await ContinuousClock().sleep(until: $0) }, random: { Double.random(in: 0..<1) })
}
