struct RefreshLife: Sendable, Equatable {
    typealias Instant = ContinuousClock.Instant

    var beganAt: Instant
    var endsAt: Instant
    var stage = Stage.quiet

    enum Stage: Sendable {
        case quiet
        /// One use before the end was tried, which may prolong it.
        case tried
        case announced
    }

    /// Shortest session that is kept alive; a shorter one would cost a token request each minute.
    private static let worthKeeping = Duration.seconds(300)

    /// Bound on the server's value, in seconds, against overflow.
    private static let longest = 10 * 366 * 24 * 3600.0

    /// - Parameter seconds: the server's value; `nil`, 0 and less: no end.
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

    /// A week before the end, or in the last quarter of a short life.
    var warnAt: Instant { endsAt - min(.seconds(7 * 24 * 3600), beganAt.duration(to: endsAt) / 4) }
}
