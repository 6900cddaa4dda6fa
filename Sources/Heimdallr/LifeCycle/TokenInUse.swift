/// The token that `TokenLifeCycle.use` would return without a change of state.
///
/// A class, because a copy of the life cycle's values costs each request hundreds of instructions: the size of
/// `ContinuousClock.Instant` is known only at run time.
final class TokenInUse: Sendable {
    private let token: AccessToken
    /// Expiry, or the earlier time of a refresh that has to begin.
    private let end: ContinuousClock.Instant

    init(_ token: AccessToken, until end: ContinuousClock.Instant) { (self.token, self.end) = (token, end) }

    func token(at now: ContinuousClock.Instant) -> AccessToken? { now < end ? token : nil }
}

extension TokenLifeCycle {
    /// `nil` if the next use changes the state, or depends on the resource.
    var inUse: TokenInUse? {
        guard stage == .running, let held, held.firstUsedAt != nil, !suspicions.concern(held.token.generation) else {
            return nil
        }
        let expiry = held.token.expiresAt
        return TokenInUse(held.token, until: fetching.isIdle ? min(held.refreshAt, expiry) : expiry)
    }
}
