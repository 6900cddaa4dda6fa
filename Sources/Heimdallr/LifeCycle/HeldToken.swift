/// The current access token, the time of its refresh, and facts about its use.
struct HeldToken: Sendable {
    typealias Instant = ContinuousClock.Instant

    let token: AccessToken
    /// Time of the refresh, if the token is used.
    let refreshAt: Instant
    private(set) var firstUsedAt: Instant?
    /// Whether the token came from the store. Its rejection then does not suggest that a new token is rejected too.
    let isStored: Bool
    /// Whether a resource called the token invalid while only a login could replace it.
    private(set) var isInvalid = false
    /// Whether this refusal announced the need for a login, which was not known before.
    private(set) var announcedNeed = false

    /// - Parameter refreshBefore: longest time before expiry at which a refresh begins, limited to half the lifetime.
    init(_ token: AccessToken, isStored: Bool = false, refreshBefore: Duration, _ moment: Moment) {
        self.token = token
        self.isStored = isStored
        let early = min(refreshBefore, moment.now.duration(to: token.expiresAt) / 2)
        // A random time in half the window, so that many proxies do not refresh at the same moment.
        refreshAt = token.expiresAt - early * (0.5 + 0.5 * moment.random())
    }

    mutating func noteUse(at now: Instant) { if firstUsedAt == nil { firstUsedAt = now } }

    mutating func noteInvalid(announcesNeed: Bool) {
        isInvalid = true
        announcedNeed = announcedNeed || announcesNeed
    }

    /// Ends the short way of `TokenInUse`, so that the next use finds the former token.
    mutating func rest() { firstUsedAt = nil }

    func wantsRefresh(at now: Instant) -> Bool { firstUsedAt != nil && now >= refreshAt }

    /// Whether no resource has accepted the token yet, and its first use is less than 10 s ago or still to come.
    func isFirstUse(at now: Instant) -> Bool {
        !token.wasAccepted && (firstUsedAt.map { now - $0 < .seconds(10) } ?? true)
    }
}
