// Steps of all kinds of login, from the store's lease to the saved token.
extension Heimdallr {
    /// Sends the event of a failed login, except for mistakes of the caller, and for ended or overtaken logins.
    package func reportFailure(_ error: LoginError) {
        switch error {
        case .overtaken, .cancelled, .stopped, .wrongMethod, .badRedirectURI, .badClient, .offerChanged: return
        default: apply { $0.loginFailed(error, $1) }
        }
    }

    /// Runs a step of a login. If the step fails, sends the event and throws the error again.
    func reportingFailure<Value>(_ step: () async throws(LoginError) -> Value) async throws(LoginError) -> Value {
        do throws(LoginError) { return try await step() } catch {
            reportFailure(error)
            throw error
        }
    }

    func checkRunning() throws(LoginError) { if look({ $0.stage == .stopped || $0.isYielding }) { throw .stopped } }

    /// Returns the address of an endpoint. `metadata` is the server's metadata, if it is known.
    func url(_ endpoint: Endpoint, in metadata: ServerMetadata? = nil) async throws(LoginError) -> String {
        do throws(DiscoveryFault) { return try await requests.directory.url(endpoint, in: metadata) } catch {
            throw LoginError(error)
        }
    }

    /// Secrets to hide in a server's messages.
    var liveSecrets: [Secret] {
        let held = tokensInMemory()
        return [held.accessToken, held.refreshToken].compactMap { $0 }
    }

    /// Returns `liveSecrets` and the client's credentials.
    package func knownSecrets() async -> [Secret] {
        var request = TokenRequest(form: [], headers: [])
        try? await requests.credentials.authenticate(&request)
        return liveSecrets + request.secrets
    }

    /// Whether an id token is expected. Without an issuer it could not be checked.
    var wantsIDToken: Bool {
        requests.configuration.issuer != nil && requests.requestedScope.contains("openid")
            && requests.settings.usesIDToken
    }

    /// Runs `body` under the client's gate and the record's lease. Cancellation of the caller does not stop `body`,
    /// because a one-time credential may already be used.
    func holdingStore<Value: Sendable>(
        _ body: @escaping @Sendable () async throws(LoginError) -> Value
    ) async throws(LoginError) -> Value {
        let result = await Task { [self] in
            guard let turn = await turns.acquire() else { return Result<Value, LoginError>.failure(.cancelled) }
            defer { turns.release(turn) }
            var lease: (any TokenStoreLease)?
            do {
                lease = try await store.lease(client: recordName)
            } catch let error as TokenStoreError where error.kind == .busy || error.kind == .unreachable {
                return .failure(.endpoint(.store(error)))
            } catch {
                // A faulty store can't exclude other processes. The login goes on.
            }
            countLogin(1)
            defer { countLogin(-1) }
            let result: Result<Value, LoginError>
            do throws(LoginError) {
                try checkRunning()
                result = .success(try await body())
            } catch {
                result = .failure(error)
            }
            await lease?.release()
            return result
        }.value
        return try result.get()
    }

    /// Sends a login's token request. Returns the answer and the time of the request.
    func token(
        _ form: [FormParameter], grantType: String, sendsScope: Bool, to endpoint: String?
    ) async throws(LoginError) -> (TokenResponse, ContinuousClock.Instant) {
        let (outcome, askedAt) = try await ask(form, grantType: grantType, sendsScope: sendsScope, to: endpoint)
        report(outcome, grantType, since: askedAt)
        switch outcome {
        case .response(let response): return (response, askedAt)
        case .fault(let fault, _): throw LoginError(fault)
        // A login's request has no such outcome.
        case .adopted, .seedSpent: throw .overtaken
        }
    }

    /// Sends a token request. Returns the outcome and the time of the request.
    /// - Throws: `LoginError` if nothing was sent.
    func ask(
        _ form: [FormParameter], grantType: String, sendsScope: Bool, to endpoint: String?
    ) async throws(LoginError) -> (TokenLifeCycle.Outcome, ContinuousClock.Instant) {
        var prepared: TokenRequests.Prepared
        let slot: TokenRequestLimiter.Slot?
        do throws(TokenEndpointFault) {
            prepared = try await requests.prepare(
                grantType: grantType, form, scope: sendsScope ? requests.configuration.scope : [], to: endpoint)
            slot = try await requests.slot(for: &prepared)
        } catch {
            throw LoginError(error)
        }
        guard let slot else { throw .cancelled }
        defer { requests.httpClient.release(slot) }
        let askedAt = clock.now()
        apply { $0.askedForLogin(now: $1.now) }
        let outcome = await requests.perform(prepared, hiding: liveSecrets, wallClock: clock.wallClock)
        return (outcome, askedAt)
    }

    /// Returns the signed-in person from the id token; `nil`: no id token is expected, or an optional one is missing.
    /// - Throws: `LoginError.idToken`
    private func signIn(from response: TokenResponse, nonce: String?, isRequired: Bool) async throws(LoginError)
        -> SignIn?
    {
        let expected = requests.settings.expectedPersons
        guard wantsIDToken || !expected.isEmpty else { return nil }
        guard wantsIDToken, let idToken = response.idToken else {
            let isGranted = response.scope?.contains("openid") ?? true
            if isRequired && isGranted || !expected.isEmpty { throw .idToken(.missing) }
            return nil
        }
        do throws(IDTokenFault) {
            let token = try SignedToken(idToken.revealedBytes)
            try await issuerKeys.check(token)
            // The keys' metadata has the issuer's spelling.
            let issuer = requests.configuration.issuer ?? ""
            let (claims, now) = (Claims(token.payload), clock.wallClock())
            do throws(IDTokenFault) {
                try claims.check(issuer: issuer, client: requests.credentials.identifier, nonce: nonce, now: now)
            } catch { throw claims.explained(error, now: now) }
            try claims.check(response.accessToken, by: token.algorithm)
            try claims.check(isOneOf: expected)
            var name = claims.personalName
            if name == nil { name = await userInfoName(of: claims.subject, response) }
            return SignIn(idToken: idToken, name: name ?? claims.name)
        } catch {
            throw .idToken(error)
        }
    }

    /// Verifies the id token of a login's answer, saves the token, then makes it current. Call only in `holdingStore`.
    func takeUp(
        _ response: TokenResponse, askedAt: ContinuousClock.Instant, nonce: String? = nil, needsIDToken: Bool = false
    ) async throws(LoginError) {
        let signIn = try await signIn(from: response, nonce: nonce, isRequired: needsIDToken)
        let stored = (try? await store.load(client: recordName))?.revision ?? 0
        let taken = apply { life, moment in
            Result { () throws(TokenResponseError) in
                try life.loggedIn(response, as: signIn, askedAt: askedAt, over: stored, moment)
            }
        }
        switch taken {
        case .failure(let error): throw .endpoint(.answer(error))
        case .success(nil): throw .stopped
        case .success(let login?):
            let saved = await save(login.record)
            guard !saved.isSuperseded else { throw .overtaken }
            let isUsed = apply { $0.loginSaved(login.id, login.record, fault: saved.fault, $1) }
            guard isUsed else {
                try checkRunning()
                throw .overtaken
            }
        }
    }
}

extension LoginError {
    init(_ fault: DiscoveryFault) {
        if case .missing(let name) = fault { self = .noEndpoint(name) } else { self = .discovery(fault) }
    }

    init(_ fault: TokenEndpointFault) {
        switch fault {
        case .refused(let error): self = .refused(error)
        case .discovery(let fault): self.init(fault)
        default: self = .endpoint(fault)
        }
    }
}
