// The token for one of several resources. A 401 of one resource leaves the token to the others.
extension Heimdallr {
    /// Returns a valid token for `resource`. Waits for one until `deadline`; the token request goes on after that.
    /// - Parameters:
    ///   - resource: a name out of a small set, for example the origin.
    ///   - refused: the token that this resource has just answered with 401, so that only a newer one helps.
    ///   - deadline: end of the wait.
    /// - Throws: `HeimdallrError`; the token in use may still serve then.
    public func accessToken(
        for resource: String, insteadOf refused: AccessToken? = nil, before deadline: ContinuousClock.Instant
    ) async throws(HeimdallrError) -> AccessToken {
        try await waiting { life, id, moment in
            life.wait(id, for: resource, insteadOf: refused?.generation, until: deadline, moment)
        }
    }

    /// Reports a 401 of `resource` to a request with `token`, without another error than `invalid_token` (RFC 6750 section
    /// 3.1). A new token is fetched for this resource; other resources use the old one until then. If the resource refuses
    /// the new one too, its 401s start no token request for a time that doubles, up to the token's life. Never waits.
    /// - Parameters:
    ///   - token: the token on the request.
    ///   - resource: as in `accessToken(for:insteadOf:before:)`.
    ///   - saysInvalid: whether the challenge says `invalid_token`.
    ///   - isReplay: whether the request had been refused before, with an older token.
    /// - Returns: whether to wait for `accessToken(for:insteadOf:before:)` and repeat the request; else the 401 stands.
    public func refused(_ token: AccessToken, by resource: String, saysInvalid: Bool, isReplay: Bool) -> Bool {
        apply {
            $0.refused(token.generation, by: resource, saysInvalid: saysInvalid, isReplay: isReplay, $1)
        }
    }

    /// Reports another answer than 401 of `resource`, once for each token and each repeated request. Never waits.
    /// - Parameters:
    ///   - token: the token on the request.
    ///   - resource: as in `accessToken(for:insteadOf:before:)`.
    ///   - isReplay: whether the request had been refused before, with an older token.
    public func accepted(_ token: AccessToken, by resource: String, isReplay: Bool) {
        token.noteAccepted()
        apply { life, _ in life.accepted(token.generation, by: resource, isReplay: isReplay) }
    }
}
