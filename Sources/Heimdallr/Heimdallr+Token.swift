// The token in memory: waiting for it, putting it on requests, forgetting it.
extension Heimdallr {
    /// The token to use now. Waits for one where there is none, for `limit` at the longest.
    /// - Throws: `HeimdallrError`, which says why there is none and when to ask again.
    public func accessToken(waiting limit: Duration = .seconds(30)) async throws(HeimdallrError) -> AccessToken {
        try await accessToken(before: clock.now() + limit)
    }

    /// To be called when the resource answered 401 to a request that carried `token` (RFC 6750 section 3.1): the token
    /// is never used again, and a new one is fetched. Does nothing when it has been replaced already. Never waits.
    public func reject(_ token: AccessToken) {
        apply { $0.reject(generation: token.generation, $1) }
    }

    /// Puts a token onto `request`. Waits for one where there is none, for `limit` at the longest.
    /// - Throws: `HeimdallrError`; the request is unchanged then.
    public func authenticate(
        _ request: inout HeimdallrHTTPRequest, waiting limit: Duration = .seconds(30)
    ) async throws(HeimdallrError) {
        put(try await accessToken(waiting: limit), on: &request)
    }

    /// Form of `token` on a request of this client: a header field or a query parameter. For programs with other
    /// request types.
    public func credential(for token: AccessToken) -> RequestCredential { authenticator.credential(for: token) }

    /// Whether there is a token that may be used now. Unlike `currentToken()` it never starts a refresh.
    public var hasAccessToken: Bool {
        let now = clock.now()
        guard let token = look({ $0.token }), !token.isExpired(at: now) else { return false }
        return certificate.map { $0() == token.certificate } ?? true
    }

    /// Whether a person has to log in before there can be a new token; the one in use may still serve. One resource's
    /// `invalid_token` alone does not make it so.
    public var awaitsPerson: Bool {
        look { $0.announcedNeed && !$0.isTokenInvalid }
    }

    /// Treats the access token as expired from now on; the refresh token stays.
    public func invalidateAccessToken() {
        apply { $0.invalidate($1) }
    }

    /// Forgets access and refresh token, in memory and in the store. Does not ask the server: see `logOut(locally:)`.
    /// - Throws: errors of the store. The tokens in memory are gone even then.
    public func clearAccessToken() async throws {
        callers?.forget()
        apply { $0.clear($1) }
        // A cancellation must not stop this halfway: the store would bring the tokens back.
        try await Task { [self] in
            guard let turn = await gate.acquire() else { throw CancellationError() }
            defer { gate.release(turn) }
            try await store.remove(client: recordName)
        }.value
    }

    /// The same for one who holds the gate.
    func forgetHoldingGate() async throws {
        callers?.forget()
        apply { $0.clear($1) }
        try await store.remove(client: recordName)
    }

    /// The tokens to revoke.
    func tokensInMemory() -> (refreshToken: Secret?, accessToken: Secret?, expiresIn: Duration?, revision: UInt64) {
        let now = clock.now()
        return look {
            ($0.refreshToken, $0.token?.value, $0.token.map { now.duration(to: $0.expiresAt) }, $0.revision)
        }
    }
}
