// The token, for one resource among several: one's 401 takes it from nobody else.
extension Heimdallr {
    /// What `currentToken(for:)` gives, waiting for it if need be.
    /// - Parameter refused: a 401 came with this one, so only a newer one helps.
    /// - Throws: `HeimdallrError`; the token in use, where there is one, may still serve then.
    public func accessToken(
        for resource: String, insteadOf refused: AccessToken? = nil, before deadline: ContinuousClock.Instant
    ) async throws(HeimdallrError) -> AccessToken {
        try await waiting { life, id, now in
            life.wait(
                id, for: resource, insteadOf: refused?.generation, until: deadline, now: now, random: self.clock.random)
        }
    }

    /// `resource` answered 401 to a request that really carried `token`, and did not say that something else is amiss
    /// (RFC 6750 section 3.1). The token becomes suspect for this resource: a new one is fetched, and everybody else
    /// goes on with the old one until it is there. If the new one is refused as well, the token is not at fault: then
    /// 401s of this resource start no token request for a time that doubles, at most the token's life. Never waits.
    /// - Parameters:
    ///   - saysInvalid: the challenge says `invalid_token`.
    ///   - isReplay: the request had been refused before, with an older token.
    /// - Returns: whether it makes sense to wait for `accessToken(for:insteadOf:before:)` and to send the request once
    ///   more; else the 401 stands.
    public func refused(_ token: AccessToken, by resource: String, saysInvalid: Bool, isReplay: Bool) -> Bool {
        apply {
            $0.refused(
                token.generation, by: resource, saysInvalid: saysInvalid, isReplay: isReplay, now: $1,
                random: clock.random)
        }
    }

    /// `resource` took it. To be told once for each token, and for each request that had been refused before.
    public func accepted(_ token: AccessToken, by resource: String, isReplay: Bool) {
        token.noteAccepted()
        apply { life, _ in life.suspicions.accepted(token.generation, at: resource, isReplay: isReplay) }
    }
}
