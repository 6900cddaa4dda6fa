// The token for one of several resources. A 401 of one resource leaves the token to the others.
extension Heimdallr {
    /// The token to use now for `resource`. Waits for one where `currentToken(for:)` gives `nil`.
    /// - Parameters:
    ///   - resource: a name of the caller's choice, the same text each time, out of a small set: the origin, say.
    ///   - refused: the token that this resource has just answered with 401, so that only a newer one helps.
    ///   - deadline: when the wait ends; the token request goes on.
    /// - Throws: `HeimdallrError`; the token in use, where there is one, may still serve then.
    public func accessToken(
        for resource: String, insteadOf refused: AccessToken? = nil, before deadline: ContinuousClock.Instant
    ) async throws(HeimdallrError) -> AccessToken {
        try await waiting { life, id, moment in
            life.wait(id, for: resource, insteadOf: refused?.generation, until: deadline, moment)
        }
    }

    /// To be called when `resource` answered 401 to a request that carried `token`, and did not name another error than
    /// `invalid_token` (RFC 6750 section 3.1). A new token is fetched for this resource; requests to other resources go
    /// on with the old one until it is there. If the resource refuses the new one too, the token is not the cause: 401s
    /// of this resource then start no token request for a time that doubles each time, up to the token's life. Never
    /// waits.
    /// - Parameters:
    ///   - token: the token that the request carried.
    ///   - resource: the name that `currentToken(for:)` was called with.
    ///   - saysInvalid: whether the challenge says `invalid_token`.
    ///   - isReplay: whether the request had been refused before, with an older token.
    /// - Returns: whether it makes sense to wait for `accessToken(for:insteadOf:before:)` and to send the request once
    ///   more. If not, the 401 is the answer.
    public func refused(_ token: AccessToken, by resource: String, saysInvalid: Bool, isReplay: Bool) -> Bool {
        apply {
            $0.refused(token.generation, by: resource, saysInvalid: saysInvalid, isReplay: isReplay, $1)
        }
    }

    /// To be called when `resource` answered anything but 401 to a request that carried `token`: once for each token,
    /// and for each request that had been refused before. Never waits.
    /// - Parameters:
    ///   - token: the token that the request carried.
    ///   - resource: the name that `currentToken(for:)` was called with.
    ///   - isReplay: whether the request had been refused before, with an older token.
    public func accepted(_ token: AccessToken, by resource: String, isReplay: Bool) {
        token.noteAccepted()
        apply { life, _ in life.suspicions.accepted(token.generation, at: resource, isReplay: isReplay) }
    }
}
