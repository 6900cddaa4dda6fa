// Clients whose server and `client_id` come from the documents of an API.
extension Heimdallr {
    /// Whether `HeimdallrConfiguration.enrolment` is set: the API names the server, and the client is found at run time.
    public var enrols: Bool { exchange.enroller != nil }

    /// Whether a request may be sent without a token, because a person has to sign in first. The API's challenge then says what
    /// the sign-in needs. Never waits. `false` if `enrols` is.
    public func sendsWithoutToken() -> Bool {
        guard exchange.enroller != nil, loginMethod != nil else { return false }
        return apply { $0.lacksPerson($1) }
    }

    /// Reports a challenge of the API. Never waits. No effect unless `enrols`, or for a challenge of another origin than the API's.
    /// - Parameters:
    ///   - challenge: the challenge.
    ///   - hadToken: whether the refused request had a token. The API may then have another server.
    public func challenged(_ challenge: ResourceChallenge, hadToken: Bool) {
        guard let enroller = exchange.enroller, enroller.note(challenge, hadToken: hadToken) else { return }
        apply { life, _ in life.act(.emit(.moreConsentNeeded(scope: enroller.stepUp.scopes))) }
    }

    /// Returns the plan of a sign-in. Reads the documents, and changes nothing.
    /// - Parameter redirectURI: the redirect URI, as for `beginLogin`.
    /// - Throws: `LoginError.discovery`, for the first failure.
    public func signInOffer(redirectURI: String) async throws(LoginError) -> SignInOffer {
        guard let enroller = exchange.enroller else { throw .wrongMethod }
        // The record may have a client of another process.
        await readAhead()
        do throws(DiscoveryFault) {
            return try await enroller.offer(exchange.directory, grant: exchange.grant.type, redirectURI: redirectURI)
        } catch { throw LoginError(error) }
    }

    /// Uses a client that a person has registered at the server by hand.
    /// - Parameters:
    ///   - identifier: the `client_id`.
    ///   - secret: `nil`: a public client.
    ///   - redirectURI: as for `signInOffer(redirectURI:)`.
    /// - Throws: `LoginError`; nothing has changed then.
    public func useClient(identifier: String, secret: Secret?, redirectURI: String) async throws(LoginError) {
        guard let enroller = exchange.enroller else { throw .wrongMethod }
        guard ClientRegistration.isVisible(identifier, spaces: true),
            secret.map({ !$0.isEmpty && $0.count <= ResourceMetadata.maxTextBytes }) ?? true
        else { throw .discovery(.registration("the client_id or its secret has other characters than ASCII")) }
        let offer = try await signInOffer(redirectURI: redirectURI)
        try await holdingStore { () async throws(LoginError) in
            try await self.adopt(enroller.typed(identifier: identifier, secret: secret, for: offer), enroller)
        }
    }

    /// Lets the next sign-in register anew, as after `invalid_client`: a person saw that the server has forgotten the client. No
    /// effect on other clients than registered ones.
    public func forgetRegistration() { _ = exchange.enroller?.clientRefused() }

    /// Finds server and client for a sign-in, and keeps them. No effect on a client that does not enrol.
    /// - Returns: further parameters for the authorization endpoint: RFC 9470 section 4; `prompt`, without which OpenID providers give
    ///   no refresh token (OpenID Connect Core section 11).
    func enrol(redirectURI: String) async throws(LoginError) -> [FormParameter] {
        guard let enroller = exchange.enroller else { return [] }
        try await holdingStore { () async throws(LoginError) in
            // Under the lease: another process may have registered a client.
            let offer = try await self.signInOffer(redirectURI: redirectURI)
            let enrolment: Enrolment
            do throws(DiscoveryFault) {
                enrolment = try await enroller.enrolment(for: offer, redirectURI: redirectURI)
            } catch {
                enroller.note(error)
                throw LoginError(error)
            }
            try await self.adopt(enrolment, enroller)
        }
        let stepUp = enroller.stepUp
        let isOffline = enroller.enrolment?.scope.contains(ScopeChoice.offline) ?? false
        return (isOffline ? [FormParameter("prompt", "consent")] : [])
            + (stepUp.acrValues.map { [FormParameter("acr_values", $0)] } ?? [])
            + (stepUp.maxAge.map { [FormParameter("max_age", "\($0)")] } ?? [])
    }

    /// Saves an enrolment in the record. Under `holdingStore` only.
    private func adopt(_ enrolment: Enrolment, _ enroller: Enroller) async throws(LoginError) {
        // Another process may have stored newer tokens, which belong to its own enrolment.
        await readAhead()
        guard enrolment != enroller.enrolment else { return }
        let stored = (try? await store.load(client: recordName))?.revision ?? 0
        guard let new = apply({ $0.enrolled(enrolment, over: stored, $1) }) else { throw .stopped }
        switch await save(new) {
        case .done: apply { $0.resaved(new, fault: nil, $1) }
        case .failed(let error): apply { $0.resaved(new, fault: error, $1) }
        case .superseded(let later):
            takeUp(later)
            throw .overtaken
        }
    }

    /// Checks before a code is sent that the enrolment still has the issuer of the code. Under `holdingStore` only.
    func checkEnrolment(_ issuer: String?) async throws(LoginError) {
        guard let enroller = exchange.enroller else { return }
        // The login may have begun at another process.
        await readAhead()
        guard enroller.enrolment?.issuer == issuer else { throw .reconfigured }
    }
}

extension TokenExchange {
    /// Finds the server for a grant without a person. Before other token requests, checks that the API still names the server.
    /// - Throws: `TokenEndpointFault.discovery`
    func enrol(for kind: TokenLifeCycle.FetchKind) async throws(TokenEndpointFault) {
        guard let enroller else { return }
        do throws(DiscoveryFault) {
            guard kind == .grant else { return try await enroller.confirm(directory) }
            let offer = try await enroller.offer(directory, grant: grant.type, redirectURI: nil)
            let enrolment = try await enroller.enrolment(for: offer, redirectURI: nil)
            if enrolment != enroller.enrolment { enroller.use(enrolment) }
        } catch { throw .discovery(error) }
    }
}
