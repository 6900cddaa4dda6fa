internal import Cryptography

// Logins: how a person gives a client its first token. Any thread.
extension Heimdallr {
    /// How a person logs in. `nil`: the client gets its tokens without a person.
    public var loginMethod: LoginMethod? { exchange.grant.loginMethod }

    /// How much time a person has at a browser.
    static let loginLife = Duration.seconds(600)

    /// Begins a login at a browser, for the grants `InteractiveGrant(.browser)` (RFC 6749 section 4.1, with PKCE, RFC
    /// 7636) and `InteractiveGrant(.implicit)`. Finds the endpoints and, where that is wanted, pushes the request (RFC
    /// 9126). The person has ten minutes. Send them to `LoginAttempt.url`, and call `finishLogin(_:redirectedTo:)`.
    /// - Parameters:
    ///   - redirectURI: where the server sends the browser afterwards, as it was registered: an absolute URI without a
    ///     fragment; https, http on loopback, or a private scheme (RFC 8252).
    ///   - goesAtOnce: whether a browser opens the address now. A pushed request lives for seconds only, so nothing is
    ///     pushed for an address that is shown to be opened later.
    /// - Throws: `LoginError`; nothing has changed then.
    public func beginLogin(redirectURI: String, goesAtOnce: Bool = true) async throws(LoginError) -> LoginAttempt {
        guard let method = loginMethod, method == .browser || method == .implicit else { throw .wrongMethod }
        _ = try RedirectURI(redirectURI)
        try checkRunning()
        do throws(LoginError) {
            return try await begin(method, redirectURI: redirectURI, goesAtOnce: goesAtOnce)
        } catch {
            tell(error)
            throw error
        }
    }

    private func begin(
        _ method: LoginMethod, redirectURI: String, goesAtOnce: Bool
    ) async throws(LoginError) -> LoginAttempt {
        let endpoint = try await url(.authorization)
        let tokenEndpoint = method == .implicit ? "" : try await url(.token)
        // Where every address is configured, the rest of what the issuer says is not worth a failure.
        let metadata = try? await exchange.directory.metadata()
        let request: AuthorizationRequest
        do {
            let thumbprint = try await exchange.binding?.key().thumbprint()
            request = try AuthorizationRequest(
                method, client: exchange.credentials.identifier, redirectURI: redirectURI,
                fixed: exchange.fixedParameters(beside: [], sendsScope: true),
                wantsIDToken: exchange.configuration.scope.contains("openid"), keyThumbprint: thumbprint)
        } catch let error as SecretProviderError {
            throw .endpoint(.secret(error))
        } catch {
            throw .noRandomness
        }
        var expectation = LoginAttempt.Expectation(
            method: method, issuer: exchange.configuration.issuer, tokenEndpoint: tokenEndpoint)
        expectation.requiresIssuer = metadata?.alwaysNamesIssuer ?? false
        expectation.verifier = request.verifier
        expectation.nonce = request.nonce
        expectation.record = recordName
        return LoginAttempt(
            client: name, url: try await address(endpoint, request, metadata, goesAtOnce: goesAtOnce),
            state: request.state,
            redirectURI: redirectURI, expiresAt: clock.now() + Self.loginLife, expectation: expectation)
    }

    /// Ends a login at a browser: checks that the answer belongs to this attempt, exchanges the code for a token (RFC
    /// 6749 section 4.1.3), verifies the id token, stores the token and uses it from then on.
    /// - Parameters:
    ///   - attempt: what `beginLogin(redirectURI:goesAtOnce:)` of the same client returned. Use it only once.
    ///   - url: the whole URL that the server sent the browser to, with its query or fragment.
    /// - Throws: `LoginError`; nothing has been stored then.
    public func finishLogin(_ attempt: LoginAttempt, redirectedTo url: String) async throws(LoginError) {
        guard attempt.client == name, attempt.expectation.method == loginMethod else { throw .wrongMethod }
        try checkRunning()
        guard clock.now() < attempt.expiresAt else { throw .expired }
        do throws(LoginError) {
            guard attempt.expectation.record == recordName else { throw .reconfigured }
            let answer = try AuthorizationResponse(
                url, redirectURI: attempt.redirectURI, state: attempt.state, expecting: attempt.expectation)
            try answer.checkRefusal(hiding: await knownSecrets())
            try await take(answer, attempt)
        } catch {
            tell(error)
            throw error
        }
    }

    private func take(_ answer: AuthorizationResponse, _ attempt: LoginAttempt) async throws(LoginError) {
        let expectation = attempt.expectation
        if expectation.method == .implicit {
            var heard = try answer.token()
            heard.requestSecrets = await knownSecrets()
            let response = heard
            let askedAt = clock.now()
            try await holdingStore { () async throws(LoginError) in
                let signIn = try await self.signIn(from: response, nonce: expectation.nonce, isRequired: false)
                try await self.takeUp(response, as: signIn, askedAt: askedAt)
            }
            return
        }
        var form = [FormParameter("code", try answer.code()), FormParameter("redirect_uri", attempt.redirectURI)]
        if let verifier = expectation.verifier { form.append(FormParameter("code_verifier", verifier)) }
        let whole = form
        try await holdingStore { () async throws(LoginError) in
            let (response, askedAt) = try await self.token(
                whole, grantType: "authorization_code", sendsScope: false, to: expectation.tokenEndpoint)
            let signIn = try await self.signIn(from: response, nonce: expectation.nonce, isRequired: true)
            try await self.takeUp(response, as: signIn, askedAt: askedAt)
        }
    }

    /// Logs in with a user name and a password that a person typed in (RFC 6749 section 4.3), for the grant
    /// `InteractiveGrant(.password)`. Only the tokens are kept.
    /// - Parameters:
    ///   - username: sent once.
    ///   - password: sent once.
    /// - Throws: `LoginError`; nothing has been stored then.
    public func login(username: String, password: Secret) async throws(LoginError) {
        guard loginMethod == .password else { throw .wrongMethod }
        try checkRunning()
        let form = [FormParameter("username", username), FormParameter("password", password)]
        do throws(LoginError) {
            try await holdingStore { () async throws(LoginError) in
                let (response, askedAt) = try await self.token(form, grantType: "password", sendsScope: true, to: nil)
                let signIn = try await self.signIn(from: response, nonce: nil, isRequired: false)
                try await self.takeUp(response, as: signIn, askedAt: askedAt)
            }
        } catch {
            tell(error)
            throw error
        }
    }

    /// Asks for a new token now, though the old one is still good. Two token requests are at least a second apart, and
    /// the server's `Retry-After` is honoured. Does nothing for a client that needs a login. Returns at once.
    public func refreshNow() {
        apply { $0.refreshNow($1) }
    }

    /// As `refreshNow()`, and waits for the outcome, for `limit` at the longest. Waits for the request under way, if
    /// there is one.
    /// - Throws: `HeimdallrError`; the former token stays.
    public func refreshedToken(waiting limit: Duration = .seconds(30)) async throws(HeimdallrError) -> AccessToken {
        try await waiting { life, id, moment in
            life.waitForRefresh(id, until: moment.now + limit, moment)
        }
    }

    /// A request of the client's own to another endpoint than the token endpoint. The client is named in the form even
    /// if it authenticates in the header: these endpoints want that.
    func post(_ form: [FormParameter], to url: String) async throws(LoginError) -> HeimdallrHTTPResponse {
        var request: TokenRequest
        do throws(TokenEndpointFault) {
            request = try await exchange.authenticated(form)
        } catch {
            throw LoginError(error)
        }
        request.set(FormParameter("client_id", exchange.credentials.identifier))
        let message = exchange.message(request, to: url)
        exchange.trace.note(message)
        let response: HeimdallrHTTPResponse
        do {
            response = try await exchange.httpClient.send(message)
        } catch {
            exchange.directory.doubt()
            throw .endpoint(.network(error as? HeimdallrHTTPClientError ?? .other))
        }
        guard (200..<300).contains(response.status) else {
            if response.status == 404 { exchange.directory.doubt() }
            if let refusal = exchange.refusal(in: response, hiding: request.secrets + liveSecrets) {
                throw .refused(refusal)
            }
            throw .endpoint(
                (300..<400).contains(response.status) ? .redirect(response.status) : .status(response.status))
        }
        return response
    }

    /// Fetches what the issuer says about itself, where there is one.
    /// - Throws: `DiscoveryFault`
    package func findMetadata() async throws(DiscoveryFault) {
        _ = try await exchange.directory.metadata()
    }

    /// Returns the addresses that this client needs to get its first token, by their names in metadata. The last one is the
    /// token endpoint, unless the grant is implicit.
    /// - Throws: `LoginError`, for the first endpoint without an address.
    package func findEndpoints() async throws(LoginError) -> [(name: String, url: String)] {
        var found: [(name: String, url: String)] = []
        for endpoint in await neededEndpoints() { found.append((endpoint.rawValue, try await url(endpoint))) }
        return found
    }

    private func neededEndpoints() async -> [Endpoint] {
        switch loginMethod {
        // The code grant alone insists on an id token: `signIn(from:nonce:isRequired:)`.
        case .browser: [.authorization] + (await pushingEndpoints()) + (wantsIDToken ? [.keys] : []) + [.token]
        case .implicit: [.authorization] + (await pushingEndpoints())
        case .device: [.deviceAuthorization, .token]
        case .password, nil: [.token]
        }
    }

    // MARK: What the logins share

    /// The event of a login that did not end with a token; who logged in or out in another way knows it already.
    func tell(_ error: LoginError) {
        switch error {
        case .overtaken, .cancelled, .stopped, .wrongMethod, .badRedirectURI: return
        default: apply { life, _ in life.act(.emit(.loginFailed(error))) }
        }
    }

    /// An answer to a login of this client was refused before it came here: an event tells of it, and nothing changes.
    package func refusedAnswer(_ error: LoginError) { tell(error) }

    /// A known parameter that an answer has twice (RFC 6749 section 3.1). Checked before the answer uses up its
    /// attempt.
    package static func repeatedParameter(in answer: Substring, isFragment: Bool) -> String? {
        AuthorizationResponse.repeatedName(in: answer, isFragment: isFragment)
    }

    /// The error of an answer without `state`, which belongs to no certain login; `nil`: no error, or a state.
    /// Printable, at most 256 characters each, without `secrets`.
    /// - Parameter answer: a query or a fragment, without its mark.
    package static func refusalWithoutState(in answer: Substring, hiding secrets: [Secret]) -> OAuthError? {
        AuthorizationResponse.refusalWithoutState(in: answer, hiding: secrets)
    }

    func checkRunning() throws(LoginError) {
        if look({ $0.stage == .stopped || $0.isYielding }) { throw .stopped }
    }

    func url(_ endpoint: Endpoint) async throws(LoginError) -> String {
        do throws(DiscoveryFault) { return try await exchange.directory.url(endpoint) } catch {
            throw LoginError(error)
        }
    }

    /// Secrets to hide in a server's messages.
    var liveSecrets: [Secret] {
        let held = tokensInMemory()
        return [held.accessToken, held.refreshToken].compactMap { $0 }
    }

    /// The same, and what the client itself authenticates with.
    package func knownSecrets() async -> [Secret] {
        var request = TokenRequest(form: [], headers: [])
        try? await exchange.credentials.authenticate(&request)
        return liveSecrets + request.secrets
    }

    /// OpenID Connect. An id token can be checked only with an issuer, whose keys are known.
    var wantsIDToken: Bool {
        exchange.configuration.issuer != nil && exchange.configuration.scope.contains("openid")
    }

    /// Runs `body` alone with this client's record: without another token request of this or another process. A
    /// cancelled caller does not stop it, because a credential that works once may be used already.
    func holdingStore<Value: Sendable>(
        _ body: @escaping @Sendable () async throws(LoginError) -> Value
    ) async throws(LoginError) -> Value {
        let result = await Task { [self] in
            guard let turn = await gate.acquire() else { return Result<Value, LoginError>.failure(.cancelled) }
            defer { gate.release(turn) }
            var lease: (any TokenStoreLease)?
            do {
                lease = try await store.lease(client: recordName)
            } catch let error as TokenStoreError where error.kind == .busy || error.kind == .unreachable {
                return .failure(.endpoint(.store(error)))
            } catch {
                // A faulty store keeps no other process out.
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

    /// A login's token request.
    /// - Returns: the token and when it was asked for.
    private func token(
        _ form: [FormParameter], grantType: String, sendsScope: Bool, to endpoint: String?
    ) async throws(LoginError) -> (TokenResponse, ContinuousClock.Instant) {
        let (outcome, askedAt) = try await ask(form, grantType: grantType, sendsScope: sendsScope, to: endpoint)
        report(outcome, grantType, since: askedAt)
        switch outcome {
        case .response(let response): return (response, askedAt)
        case .fault(let fault, _): throw LoginError(fault)
        // Not what a login's request can bring.
        case .adopted, .seedSpent: throw .overtaken
        }
    }

    /// - Throws: `LoginError` when nothing could be sent.
    func ask(
        _ form: [FormParameter], grantType: String, sendsScope: Bool, to endpoint: String?
    ) async throws(LoginError) -> (TokenLifeCycle.Outcome, ContinuousClock.Instant) {
        var prepared: TokenExchange.Prepared
        let slot: TokenRequestLimiter.Slot?
        do throws(TokenEndpointFault) {
            prepared = try await exchange.prepare(grantType: grantType, form, sendsScope: sendsScope, to: endpoint)
            slot = try await exchange.slot(for: &prepared)
        } catch {
            throw LoginError(error)
        }
        guard let slot else { throw .cancelled }
        defer { exchange.httpClient.release(slot) }
        let askedAt = clock.now()
        apply { $0.askedForLogin(now: $1.now) }
        let outcome = await exchange.perform(prepared, hiding: liveSecrets, wallClock: clock.wallClock)
        return (outcome, askedAt)
    }

    func report(_ outcome: TokenLifeCycle.Outcome, _ grantType: String, since askedAt: ContinuousClock.Instant) {
        onTokenRequest?(report(grantType, outcome, since: askedAt))
    }

    /// The signed-in person by the id token, if one is wanted.
    /// - Throws: `LoginError.idToken`
    func signIn(from response: TokenResponse, nonce: String?, isRequired: Bool) async throws(LoginError) -> SignIn? {
        guard wantsIDToken, let issuer = exchange.configuration.issuer else { return nil }
        guard let idToken = response.idToken else {
            let isGranted = response.scope?.contains("openid") ?? true
            if isRequired, isGranted { throw .idToken(.missing) }
            return nil
        }
        do throws(IDTokenFault) {
            let token = try SignedToken(idToken.revealedBytes)
            try await issuerKeys.check(token)
            let claims = Claims(token.payload)
            try claims.check(
                Claims.Expectation(
                    issuer: issuer, client: exchange.credentials.identifier, nonce: nonce, now: clock.wallClock()))
            try claims.check(response.accessToken, by: token.algorithm)
            var name = claims.personalName
            if name == nil { name = await userInfoName(of: claims.subject, response) }
            return SignIn(idToken: idToken, name: name ?? claims.name)
        } catch {
            throw .idToken(error)
        }
    }

    /// Makes a login's token durable, then uses it. Under `holdingStore` only.
    func takeUp(
        _ response: TokenResponse, as signIn: SignIn?, askedAt: ContinuousClock.Instant
    ) async throws(LoginError) {
        let stored = (try? await store.load(client: recordName))?.revision ?? 0
        let taken = apply {
            life, moment -> Result<(id: TokenLifeCycle.LoginID, record: TokenRecord)?, TokenResponseError> in
            do throws(TokenResponseError) {
                return .success(
                    try life.loggedIn(
                        response, as: signIn, askedAt: askedAt, over: stored, moment))
            } catch {
                return .failure(error)
            }
        }
        switch taken {
        case .failure(let error): throw .endpoint(.answer(error))
        case .success(nil): throw .stopped
        case .success(let login?):
            let fault: String?
            switch await save(login.record) {
            case .done: fault = nil
            case .failed(let error): fault = error.description
            case .superseded(let later):
                takeUp(later)
                throw .overtaken
            }
            let isUsed = apply {
                $0.loginSaved(login.id, login.record, fault: fault, $1)
            }
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
