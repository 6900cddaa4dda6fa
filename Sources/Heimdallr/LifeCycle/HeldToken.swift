/// The access token in use, the time of its refresh, and the doubts about it.
struct HeldToken: Sendable {
    typealias Instant = ContinuousClock.Instant

    let token: AccessToken
    /// Time of the refresh, if the token is used.
    let refreshAt: Instant
    private(set) var firstUsedAt: Instant?
    /// Whether it came from the store. Its rejection proves nothing about new tokens.
    let isStored: Bool
    /// Whether a resource called it invalid while only a login could bring another.
    private(set) var isInvalid = false

    /// - Parameter refreshBefore: longest time before expiry; at most half the life.
    init(_ token: AccessToken, isStored: Bool = false, refreshBefore: Duration, _ moment: Moment) {
        self.token = token
        self.isStored = isStored
        let early = min(refreshBefore, moment.now.duration(to: token.expiresAt) / 2)
        // Spread over half the window, so that a fleet does not ask at once.
        refreshAt = token.expiresAt - early * (0.5 + 0.5 * moment.random())
    }

    mutating func noteUse(at now: Instant) { if firstUsedAt == nil { firstUsedAt = now } }

    mutating func noteInvalid() { isInvalid = true }

    /// Whether a use changes nothing and begins no refresh.
    @inline(__always)
    func serves(at now: Instant, refreshes: Bool) -> Bool {
        !token.isExpired(at: now) && firstUsedAt != nil && (now < refreshAt || !refreshes)
    }

    func wantsRefresh(at now: Instant) -> Bool { firstUsedAt != nil && now >= refreshAt }

    /// Whether no resource has accepted it yet, and its first use is recent.
    func isFirstUse(at now: Instant) -> Bool {
        !token.wasAccepted && (firstUsedAt.map { now - $0 < .seconds(10) } ?? true)
    }
}
