/// From when to when a refresh token is good.
struct RefreshLife: Sendable, Equatable {
    typealias Instant = ContinuousClock.Instant

    var beganAt: Instant
    var endsAt: Instant
    var stage = Stage.quiet

    enum Stage: Sendable {
        case quiet
        /// It was used, or is about to be, to see whether that makes it live longer.
        case tried
        case announced
    }

    /// A shorter session is not kept alive: that would cost a token request each minute.
    private static let worthKeeping = Duration.seconds(300)

    /// No server's word makes it longer; deadlines stay far from overflow.
    private static let longest = 10 * 366 * 24 * 3600.0

    /// - Parameter seconds: as the server said; none, nothing and less mean that it has no end.
    init?(_ seconds: Double?, from askedAt: Instant) {
        guard let seconds, seconds > 0 else { return nil }
        beganAt = askedAt
        endsAt = askedAt + .milliseconds(Int64(min(seconds, Self.longest) * 1000))
    }

    init(_ record: TokenRecord.RefreshTokenLife, _ moment: Moment) {
        func instant(_ time: Int64) -> Instant {
            let bound = Int64(Self.longest)
            let (distance, overflow) = time.subtractingReportingOverflow(moment.wallClock)
            return moment.now + .seconds(overflow ? 0 : min(max(distance, -bound), bound))
        }
        beganAt = instant(record.issuedAt)
        endsAt = max(beganAt, instant(record.expiresAt))
    }

    func record(_ moment: Moment) -> TokenRecord.RefreshTokenLife {
        TokenRecord.RefreshTokenLife(
            issuedAt: moment.wallClock + moment.now.duration(to: beganAt).components.seconds,
            expiresAt: moment.wallClock + moment.now.duration(to: endsAt).components.seconds)
    }

    var isWorthKeeping: Bool { beganAt.duration(to: endsAt) >= Self.worthKeeping }

    /// Days before, or for a short life its last quarter.
    var warnAt: Instant { endsAt - min(.seconds(7 * 24 * 3600), beganAt.duration(to: endsAt) / 4) }
}
