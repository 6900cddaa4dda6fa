// The token in memory: waits for a token, puts it on requests, and forgets it.
extension Heimdallr {
    /// Returns a valid token. Waits for a token, at most for `limit`.
    /// - Throws: `HeimdallrError` with the reason and the time of the next attempt.
    public func accessToken(waiting limit: Duration = .seconds(30)) async throws(HeimdallrError) -> AccessToken {
        try await accessToken(before: clock.now() + limit)
    }

    /// Reports a 401 to a request with `token` (RFC 6750 section 3.1). Drops the token, and fetches a new one.
    /// Has no effect if the token was already replaced. Never waits.
    public func reject(_ token: AccessToken) { apply { $0.reject(generation: token.generation, $1) } }

    /// Puts a token on `request`. Waits for a token, at most for `limit`.
    /// - Throws: `HeimdallrError`. The request is then unchanged.
    public func authenticate(
        _ request: inout HeimdallrHTTPRequest, waiting limit: Duration = .seconds(30)
    ) async throws(HeimdallrError) {
        put(try await accessToken(waiting: limit), on: &request)
    }

    /// Returns the header field or query parameter with `token`, for programs with other request types.
    public func credential(for token: AccessToken) -> RequestCredential { authenticator.credential(for: token) }

    /// Whether there is a valid token. Starts no refresh, unlike `currentToken()`.
    public var hasAccessToken: Bool {
        let now = clock.now()
        guard let token = look({ $0.token }), !token.isExpired(at: now) else { return false }
        return certificate.map { $0() == token.certificate } ?? true
    }

    /// Whether a new token requires a login, or a new refresh token in the configuration. The current token may still
    /// be valid. An `invalid_token` of a resource does not count.
    public var awaitsPerson: Bool { look { $0.announcedNeed && !($0.held?.announcedNeed ?? false) } }

    /// Drops the access token, and keeps the refresh token.
    public func invalidateAccessToken() { apply { $0.invalidate($1) } }

    /// Forgets both tokens, in memory and in the store. Does not revoke the tokens: see `logOut(locally:)`.
    /// - Throws: errors of the store. The tokens in memory are forgotten even then.
    public func clearAccessToken() async throws {
        callers?.forget()
        apply { $0.clear($1) }
        // Runs even if the caller is cancelled, because a stored record would bring the tokens back.
        try await Task { [self] in
            guard let turn = await turns.acquire() else { throw CancellationError() }
            defer { turns.release(turn) }
            try await removeRecord()
        }.value
    }

    /// Does the same as `clearAccessToken()`, for callers that already hold the gate.
    func forgetHoldingGate() async throws {
        callers?.forget()
        apply { $0.clear($1) }
        try await removeRecord()
    }

    /// Removes the record. If it has more than tokens, replaces it by one without tokens: the client at an API's server,
    /// and the spent refresh tokens of the configuration.
    private func removeRecord() async throws {
        let stored = try? await store.load(client: recordName)
        let record = apply { $0.recordWithoutTokens(over: stored, $1) }
        guard record.holdsAnything else { return try await store.remove(client: recordName) }
        try await store.save(requests.completed(record), client: recordName)
    }

    func tokensInMemory() -> (refreshToken: Secret?, accessToken: Secret?, expiresIn: Duration?, revision: UInt64) {
        let now = clock.now()
        return look {
            ($0.refreshToken, $0.token?.value, $0.token.map { now.duration(to: $0.expiresAt) }, $0.revision)
        }
    }
}
