/// The access token in use and the time of its refresh.
struct HeldToken: Sendable {
    typealias Instant = ContinuousClock.Instant

    let token: AccessToken
    /// Time of the refresh, if the token is used.
    let refreshAt: Instant
    private(set) var firstUsedAt: Instant?

    /// - Parameter refreshBefore: longest time before expiry; at most half the life.
    init(_ token: AccessToken, refreshBefore: Duration, _ moment: Moment) {
        self.token = token
        let early = min(refreshBefore, moment.now.duration(to: token.expiresAt) / 2)
        // Spread over half the window, so that a fleet does not ask at once.
        refreshAt = token.expiresAt - early * (0.5 + 0.5 * moment.random())
    }

    mutating func noteUse(at now: Instant) {
        if firstUsedAt == nil { firstUsedAt = now }
    }

    /// Whether a use changes nothing and begins no refresh.
    @inline(__always)
    func serves(at now: Instant, refreshes: Bool) -> Bool {
        !token.isExpired(at: now) && firstUsedAt != nil && (now < refreshAt || !refreshes)
    }

    /// Whether a refresh is due.
    func wantsRefresh(at now: Instant) -> Bool { firstUsedAt != nil && now >= refreshAt }

    /// Whether no resource has accepted it yet, and its first use is recent.
    func isFirstUse(at now: Instant) -> Bool {
        !token.wasAccepted && (firstUsedAt.map { now - $0 < .seconds(10) } ?? true)
    }
}
