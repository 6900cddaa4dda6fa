// The token for one of several resources. After a 401 of one resource, other resources still get the token.
extension Heimdallr {
    /// Returns a valid token for `resource`. Waits until `deadline`; a token request under way then goes on.
    /// - Parameters:
    ///   - resource: a name from a small set, for example the origin.
    ///   - refused: the token that this resource has just refused with 401, so that only another token helps.
    ///   - deadline: end of the wait.
    /// - Throws: `HeimdallrError`. Other resources may still accept the current token.
    public func accessToken(
        for resource: String, insteadOf refused: AccessToken? = nil, before deadline: ContinuousClock.Instant
    ) async throws(HeimdallrError) -> AccessToken {
        try await waiting { life, id, moment in
            life.wait(id, for: resource, insteadOf: refused?.generation, until: deadline, moment)
        }
    }

    /// Reports a 401 of `resource` whose challenge has no error, or has `invalid_token` (RFC 6750 section 3.1). Fetches
    /// a new token. Until then, other resources get the old token. If the resource refuses the new token too, its 401s
    /// start no token request for a time that doubles, up to the token's lifetime. Never waits. If no resource has accepted
    /// the token yet and the former token still works, that one is used again for a moment, without a token request.
    /// - Parameters:
    ///   - token: the token on the request.
    ///   - resource: the same name as in `accessToken(for:insteadOf:before:)`.
    ///   - saysInvalid: whether the challenge says `invalid_token`.
    ///   - isReplay: whether the request was already refused with an older token.
    /// - Returns: whether to wait for `accessToken(for:insteadOf:before:)` and replay the request.
    public func refused(_ token: AccessToken, by resource: String, saysInvalid: Bool, isReplay: Bool) -> Bool {
        apply {
            $0.refused(token.generation, by: resource, saysInvalid: saysInvalid, isReplay: isReplay, $1)
        }
    }

    /// Reports a response of `resource` other than 401. Call it for the first response to each token, and for each
    /// replayed request. Never waits.
    /// - Parameters:
    ///   - token: the token on the request.
    ///   - resource: the same name as in `accessToken(for:insteadOf:before:)`.
    ///   - isReplay: whether the request was already refused with an older token.
    public func accepted(_ token: AccessToken, by resource: String, isReplay: Bool) {
        token.noteAccepted()
        apply { life, _ in life.accepted(token.generation, by: resource, isReplay: isReplay) }
    }
}
