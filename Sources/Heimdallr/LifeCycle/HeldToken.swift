/// The access token in use, and when it is to be replaced.
struct HeldToken: Sendable {
    typealias Instant = ContinuousClock.Instant

    let token: AccessToken
    /// Only one that is used is refreshed.
    let refreshAt: Instant
    private(set) var firstUsedAt: Instant?

    /// - Parameter refreshBefore: at most this long before expiry; capped at half the life.
    init(_ token: AccessToken, refreshBefore: Duration, _ moment: Moment) {
        self.token = token
        let early = min(refreshBefore, moment.now.duration(to: token.expiresAt) / 2)
        // Spread over the first half of the window, so that a fleet started at once does not ask at once.
        refreshAt = token.expiresAt - early * (0.5 + 0.5 * moment.random())
    }

    mutating func noteUse(at now: Instant) {
        if firstUsedAt == nil { firstUsedAt = now }
    }

    /// It can be used as it is: its use changes nothing, and begins no refresh.
    @inline(__always)
    func serves(at now: Instant, refreshes: Bool) -> Bool {
        !token.isExpired(at: now) && firstUsedAt != nil && (now < refreshAt || !refreshes)
    }

    /// It is time for another one.
    func wantsRefresh(at now: Instant) -> Bool { firstUsedAt != nil && now >= refreshAt }

    /// Nobody has taken it yet, and it is so new that this says something.
    func isFirstUse(at now: Instant) -> Bool {
        !token.wasAccepted && (firstUsedAt.map { now - $0 < .seconds(10) } ?? true)
    }
}
