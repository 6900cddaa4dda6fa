/// The token before the current one, until a resource accepts the current one. Some servers refuse a new token for a
/// second or two, until all of their machines know it.
struct FormerToken: Sendable {
    typealias Instant = ContinuousClock.Instant

    let token: AccessToken
    private var pauses = 0
    private var until: Instant?

    /// Pause of the current token after a refusal. Requests then use the former one.
    private static let pause = Backoff(base: .seconds(1), cap: .seconds(30))

    /// - Returns: `nil` if the token is bound to another certificate than `new`.
    init?(_ token: AccessToken, beside new: AccessToken) {
        guard token.certificate == new.certificate else { return nil }
        self.token = token
    }

    /// Whether requests use this token now.
    func serves(at now: Instant) -> Bool { until.map { now < $0 } ?? false && !token.isExpired(at: now) }

    /// Begins a pause of the current token, unless one is under way.
    /// - Returns: false if this token has expired.
    mutating func begin(at now: Instant) -> Bool {
        guard !token.isExpired(at: now) else { return false }
        if serves(at: now) { return true }
        pauses += 1
        until = now + Self.pause.ceiling(attempt: pauses)
        return true
    }
}

extension TokenLifeCycle {
    /// Lets requests use the former token for a pause, because the current one was refused before it was accepted.
    /// - Returns: false without a former token that works.
    mutating func fallBack(now: Instant) -> Bool {
        guard let token, !token.wasAccepted, suspicions.former?.begin(at: now) ?? false else { return false }
        rest()
        return true
    }
}

extension Suspicions {
    /// Returns the token to keep while no resource has accepted `new`: the current one if it works, or else its former.
    func formerToken(of current: AccessToken, beside new: AccessToken) -> FormerToken? {
        guard current.wasAccepted else { return former }
        return newestRefused == current.generation ? nil : FormerToken(current, beside: new)
    }
}
