struct RefreshLife: Sendable, Equatable {
    typealias Instant = ContinuousClock.Instant

    var beganAt: Instant
    var endsAt: Instant
    var stage = Stage.quiet

    enum Stage: Sendable {
        case quiet
        /// The refresh token was used once before its expiry, because that may extend the session.
        case tried
        case announced
    }

    /// Shortest session that is extended. Shorter sessions would need a token request about every minute.
    private static let worthKeeping = Duration.seconds(300)

    /// Upper bound in seconds for the server's value, against overflow.
    private static let longest = 10 * 366 * 24 * 3600.0

    /// - Parameter seconds: lifetime stated by the server; `nil`, 0 or less: no known end.
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

    /// Time of the warning: a week before the end, but not before the last quarter of the lifetime.
    var warnAt: Instant { endsAt - min(.seconds(7 * 24 * 3600), beganAt.duration(to: endsAt) / 4) }
}
