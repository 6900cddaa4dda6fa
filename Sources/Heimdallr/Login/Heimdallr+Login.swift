internal import Cryptography

// Logins, by which a person gives a client its first token. Any thread.
extension Heimdallr {
    /// Method of a person's login; `nil`: the client gets its tokens without a person.
    public var loginMethod: LoginMethod? { requests.grant.loginMethod }

    /// Time limit of a login at a browser.
    static let loginLife = Duration.seconds(600)

    /// Begins a login at a browser (RFC 6749 section 4.1, with PKCE; or implicit). Pushes the request if possible (RFC
    /// 9126). Send the person to `LoginAttempt.url`, and call `finishLogin(_:redirectedTo:)` within ten minutes.
    /// - Parameters:
    ///   - redirectURI: the registered address, an absolute URI without a fragment: https, http on loopback, or a
    ///     private scheme (RFC 8252).
    ///   - opensAtOnce: whether a browser opens the address now. If not, the request is not pushed: it would expire.
    ///   - agreed: `SignInOffer.consent` of the offer that the person saw; `nil`: no offer was shown.
    /// - Throws: `LoginError`. Nothing has then changed.
    public func beginLogin(
        redirectURI: String, opensAtOnce: Bool = true, agreed: String? = nil
    ) async throws(LoginError) -> LoginAttempt {
        guard let method = loginMethod, method == .browser || method == .implicit else { throw .wrongMethod }
        _ = try RedirectURI(redirectURI)
        try checkRunning()
        return try await reportingFailure { () async throws(LoginError) in
            guard let enroller = requests.enroller else {
                // The metadata is optional: all addresses may be configured.
                let metadata = try? await requests.directory.metadata()
                return try await begin(method, redirectURI, opensAtOnce, metadata, [])
            }
            return try await enrolling(enroller, redirectURI: redirectURI, agreed: agreed) {
                metadata, further throws(LoginError) in
                try await self.begin(method, redirectURI, opensAtOnce, metadata, further)
            }
        }
    }

    private func begin(
        _ method: LoginMethod, _ redirectURI: String, _ opensAtOnce: Bool, _ metadata: ServerMetadata?,
        _ further: [FormParameter]
    ) async throws(LoginError) -> LoginAttempt {
        let endpoint = try await url(.authorization, in: metadata)
        let tokenEndpoint = method == .implicit ? "" : try await url(.token, in: metadata)
        let request: AuthorizationRequest
        do {
            let thumbprint = try await requests.binding?.key().thumbprint()
            request = try AuthorizationRequest(
                method, client: requests.credentials.identifier, redirectURI: redirectURI,
                fixed: requests.form(of: .signIn, further, scope: requests.configuration.scope),
                wantsIDToken: requests.requestedScope.contains("openid") && requests.settings.usesIDToken,
                usesPKCE: requests.settings.pkce != .off, keyThumbprint: thumbprint)
        } catch let error as SecretProviderError {
            throw .endpoint(.secret(error))
        } catch {
            throw .noRandomness
        }
        let expectation = LoginAttempt.Expectation(
            method: method, issuer: requests.configuration.issuer,
            requiresIssuer: metadata?.alwaysNamesIssuer ?? false, enrolment: try requests.enroller?.digestOfBegun(),
            verifier: request.verifier, nonce: request.nonce, record: recordName, tokenEndpoint: tokenEndpoint)
        return LoginAttempt(
            client: name, url: try await address(endpoint, request, metadata, opensAtOnce: opensAtOnce),
            state: request.state, redirectURI: redirectURI, expiresAt: clock.now() + Self.loginLife,
            expectation: expectation)
    }

    /// Finishes a login at a browser: checks the answer, exchanges a code (RFC 6749 section 4.1.3) and verifies an
    /// id token. Then stores the token and makes it current.
    /// - Parameters:
    ///   - attempt: result of the same client's `beginLogin(redirectURI:opensAtOnce:agreed:)`. Use it only once.
    ///   - url: the whole URL of the redirect, with its query or fragment.
    /// - Throws: `LoginError`. Nothing has then been stored.
    public func finishLogin(_ attempt: LoginAttempt, redirectedTo url: String) async throws(LoginError) {
        guard attempt.client == name, attempt.expectation.method == loginMethod else { throw .wrongMethod }
        try checkRunning()
        guard clock.now() < attempt.expiresAt else { throw .expired }
        try await reportingFailure { () async throws(LoginError) in
            guard attempt.expectation.record == recordName, enrols == (attempt.expectation.enrolment != nil) else {
                throw .reconfigured
            }
            let answer = try AuthorizationResponse(
                url, redirectURI: attempt.redirectURI, state: attempt.state, expecting: attempt.expectation)
            try answer.checkRefusal(hiding: await knownSecrets())
            try await take(answer, attempt)
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
                try await self.takeUp(response, askedAt: askedAt, nonce: expectation.nonce)
            }
            return
        }
        let form =
            [FormParameter("code", try answer.code()), FormParameter("redirect_uri", attempt.redirectURI)]
            + (expectation.verifier.map { [FormParameter("code_verifier", $0)] } ?? [])
        try await holdingStore { () async throws(LoginError) in
            func redeemCode() async throws(LoginError) {
                let (response, askedAt) = try await self.token(
                    form, grantType: "authorization_code", sendsScope: false, to: expectation.tokenEndpoint)
                try await self.takeUp(response, askedAt: askedAt, nonce: expectation.nonce, needsIDToken: true)
            }
            guard let enroller = self.requests.enroller else { return try await redeemCode() }
            try await self.checkEnrolment(expectation.enrolment)
            try await enroller.signingIn(redeemCode)
            enroller.signedIn()
        }
    }

    /// Logs in with a user name and a password (RFC 6749 section 4.3). Sends both once, and keeps only the tokens.
    /// - Throws: `LoginError`. Nothing has then been stored.
    public func login(username: String, password: Secret) async throws(LoginError) {
        guard loginMethod == .password else { throw .wrongMethod }
        try checkRunning()
        let form = [FormParameter("username", username), FormParameter("password", password)]
        try await reportingFailure { () async throws(LoginError) in
            try await holdingStore { () async throws(LoginError) in
                let (response, askedAt) = try await self.token(form, grantType: "password", sendsScope: true, to: nil)
                try await self.takeUp(response, askedAt: askedAt)
            }
        }
    }

    /// Requests a new token, at the earliest a second after the last request and after the server's `Retry-After`. Has
    /// no effect on a client that needs a login. Returns at once.
    public func refreshNow() { apply { $0.refreshNow($1) } }

    /// Tells the client that one of its secrets, keys or certificates has changed. If the last token request failed, the
    /// next one begins at once, without a backoff. Returns at once.
    public func credentialsChanged() {
        apply { $0.repaired($1) }
        callers?.credentialsChanged()
    }

    /// Requests a new token like `refreshNow()`, and waits for the outcome at most `limit`. Joins a request under way.
    /// - Throws: `HeimdallrError`. The former token then stays.
    public func refreshedToken(waiting limit: Duration = .seconds(30)) async throws(HeimdallrError) -> AccessToken {
        try await waiting { life, id, moment in
            life.waitForRefresh(id, until: moment.now + limit, moment)
        }
    }

    /// Sends a request to an endpoint other than the token endpoint. These endpoints require `client_id` in the form.
    func post(
        _ form: [FormParameter], to url: String, _ endpoint: Endpoint
    ) async throws(LoginError) -> HeimdallrHTTPResponse {
        do throws(TokenEndpointFault) {
            var request = try await requests.authenticated(form)
            request.set(FormParameter("client_id", requests.credentials.identifier))
            requests.trace.note(address: url, of: endpoint)
            return try await requests.answer(to: request, at: url, hiding: liveSecrets)
        } catch { throw LoginError(error) }
    }

    /// Fetches the issuer's metadata, if there is an issuer.
    package func findMetadata() async throws(DiscoveryFault) -> ServerMetadata? {
        try await requests.directory.metadata()
    }

    /// Returns the endpoints for a first token, with their names in metadata. The token endpoint, if needed, is last.
    /// - Throws: `LoginError` for the first endpoint without an address.
    package func findEndpoints() async throws(LoginError) -> [(name: String, url: String)] {
        var found: [(name: String, url: String)] = []
        for endpoint in await neededEndpoints() { found.append((endpoint.rawValue, try await url(endpoint))) }
        return found
    }

    private func neededEndpoints() async -> [Endpoint] {
        switch loginMethod {
        // Only the code grant requires an id token: `takeUp(_:askedAt:nonce:needsIDToken:)`.
        case .browser: [.authorization] + (await pushingEndpoints()) + (wantsIDToken ? [.keys] : []) + [.token]
        case .implicit: [.authorization] + (await pushingEndpoints())
        case .device: [.deviceAuthorization, .token]
        case .password, nil: [.token]
        }
    }
}
