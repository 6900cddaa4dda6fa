// The token in memory: waiting for it, putting it on requests, forgetting it.
extension Heimdallr {
    /// Returns a valid token. Waits for one, at most for `limit`.
    /// - Throws: `HeimdallrError`: the reason, and the time of the next attempt.
    public func accessToken(waiting limit: Duration = .seconds(30)) async throws(HeimdallrError) -> AccessToken {
        try await accessToken(before: clock.now() + limit)
    }

    /// Reports a 401 to a request with `token` (RFC 6750 section 3.1). The token is not used again, and a new one is fetched.
    /// No effect on a token that was replaced. Never waits.
    public func reject(_ token: AccessToken) { apply { $0.reject(generation: token.generation, $1) } }

    /// Puts a token onto `request`. Waits for one, at most for `limit`.
    /// - Throws: `HeimdallrError`; the request is unchanged then.
    public func authenticate(
        _ request: inout HeimdallrHTTPRequest, waiting limit: Duration = .seconds(30)
    ) async throws(HeimdallrError) {
        put(try await accessToken(waiting: limit), on: &request)
    }

    /// Header field or query parameter with `token`, for programs with other request types.
    public func credential(for token: AccessToken) -> RequestCredential { authenticator.credential(for: token) }

    /// Whether there is a valid token. Starts no refresh, unlike `currentToken()`.
    public var hasAccessToken: Bool {
        let now = clock.now()
        guard let token = look({ $0.token }), !token.isExpired(at: now) else { return false }
        return certificate.map { $0() == token.certificate } ?? true
    }

    /// Whether only a login can bring a new token; the present one may still serve. `invalid_token` of one resource alone
    /// does not count.
    public var awaitsPerson: Bool { look { $0.announcedNeed && !$0.isTokenInvalid } }

    /// Drops the access token; the refresh token stays.
    public func invalidateAccessToken() { apply { $0.invalidate($1) } }

    /// Forgets both tokens, in memory and in the store. Does not revoke them: see `logOut(locally:)`.
    /// - Throws: errors of the store. The tokens in memory are gone even then.
    public func clearAccessToken() async throws {
        callers?.forget()
        apply { $0.clear($1) }
        // Not cancelled with the caller: a stored record would bring the tokens back.
        try await Task { [self] in
            guard let turn = await gate.acquire() else { throw CancellationError() }
            defer { gate.release(turn) }
            try await removeRecord()
        }.value
    }

    /// Does the same under the gate.
    func forgetHoldingGate() async throws {
        callers?.forget()
        apply { $0.clear($1) }
        try await removeRecord()
    }

    /// Removes the record. A client that was registered or typed in stays: the next sign-in uses it.
    private func removeRecord() async throws {
        guard look({ $0.grant.enrolment != nil }) else { return try await store.remove(client: recordName) }
        let record = apply { $0.record(nil, $1) }
        try await store.save(exchange.completed(record), client: recordName)
    }

    func tokensInMemory() -> (refreshToken: Secret?, accessToken: Secret?, expiresIn: Duration?, revision: UInt64) {
        let now = clock.now()
        return look {
            ($0.refreshToken, $0.token?.value, $0.token.map { now.duration(to: $0.expiresAt) }, $0.revision)
        }
    }
}
