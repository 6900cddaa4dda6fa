// Clients whose server and `client_id` come from the documents of an API.
extension Heimdallr {
    /// Whether `HeimdallrConfiguration.enrolment` is set, so that server and client are found by the API's documents.
    public var enrols: Bool { requests.enroller != nil }

    /// Returns whether a request may be sent without a token, because a person has to sign in first. The API's
    /// challenge then names the requirements of the sign-in. Never waits. `false` if `enrols` is `false`.
    public func sendsWithoutToken() -> Bool {
        guard requests.enroller != nil, loginMethod != nil else { return false }
        return apply { $0.lacksPerson($1) }
    }

    /// Reports a challenge of the API. Never waits. Ignored without `enrols`, and for another origin than the API's.
    /// - Parameters:
    ///   - challenge: the challenge of the response.
    ///   - hadToken: whether the refused request had a token. If so, the API may have changed its server.
    public func challenged(_ challenge: ResourceChallenge, hadToken: Bool) {
        guard let enroller = requests.enroller, enroller.note(challenge, hadToken: hadToken) else { return }
        apply { life, _ in life.act(.emit(.moreConsentNeeded(scope: enroller.stepUp.scopes))) }
    }

    /// Returns the plan of a sign-in. Reads the documents, and changes nothing.
    /// - Parameter redirectURI: the redirect URI, as for `beginLogin`.
    /// - Throws: `LoginError.discovery` for the first failure.
    public func signInOffer(redirectURI: String) async throws(LoginError) -> SignInOffer {
        try await reportingFailure { () async throws(LoginError) in try await offer(redirectURI: redirectURI) }
    }

    private func offer(redirectURI: String) async throws(LoginError) -> SignInOffer {
        guard let enroller = requests.enroller else { throw .wrongMethod }
        // The record may have a client that another process registered.
        await readAhead()
        do throws(DiscoveryFault) {
            return try await enroller.offer(requests.directory, grant: requests.grant.type, redirectURI: redirectURI)
        } catch { throw LoginError(error) }
    }

    /// Uses a client that a person has registered at the server by hand.
    /// - Parameters:
    ///   - identifier: the `client_id`.
    ///   - secret: the client's secret; `nil`: a public client.
    ///   - redirectURI: the redirect URI, as for `beginLogin`.
    ///   - agreed: `SignInOffer.consent` of the offer that the person saw; `nil`: no offer was shown.
    /// - Throws: `LoginError`. Nothing has then changed.
    public func useClient(
        identifier: String, secret: Secret?, redirectURI: String, agreed: String? = nil
    ) async throws(LoginError) {
        guard let enroller = requests.enroller else { throw .wrongMethod }
        guard ClientRegistration.isVisible(identifier, spaces: true),
            secret.map({ !$0.isEmpty && $0.count <= ResourceMetadata.maxTextBytes }) ?? true
        else { throw .badClient }
        try await reportingFailure { () async throws(LoginError) in
            let offer = try await self.offer(redirectURI: redirectURI, agreed: agreed)
            try await holdingStore { () async throws(LoginError) in
                try await self.adopt(enroller.typed(identifier: identifier, secret: secret, for: offer), enroller)
            }
        }
    }

    /// Lets the next sign-in register a new client, for example because a person saw that the server has forgotten the
    /// old client. Has an effect only on registered clients.
    /// - Parameters: the same as for `useClient(identifier:secret:redirectURI:agreed:)`.
    /// - Throws: `LoginError`. Nothing has then changed.
    public func forgetRegistration(redirectURI: String, agreed: String? = nil) async throws(LoginError) {
        try await reportingFailure { () async throws(LoginError) in
            _ = try await offer(redirectURI: redirectURI, agreed: agreed)
        }
        _ = requests.enroller?.clientRefused(atSignIn: true)
    }

    /// Finds the server and the client of a sign-in, saves both, and runs a step of the sign-in. The current tokens
    /// stay in use until the sign-in succeeds.
    /// - Parameters:
    ///   - redirectURI: the redirect URI, as for `beginLogin`.
    ///   - agreed: the same as for `useClient(identifier:secret:redirectURI:agreed:)`.
    ///   - step: receives the offer's metadata and further parameters for the authorization endpoint.
    func enrolling(
        _ enroller: Enroller, redirectURI: String, agreed: String?,
        _ step: @escaping @Sendable (ServerMetadata, [FormParameter]) async throws(LoginError) -> LoginAttempt
    ) async throws(LoginError) -> LoginAttempt {
        try await holdingStore { () async throws(LoginError) in
            // Read under the lease, because another process may have registered a client.
            let offer = try await self.offer(redirectURI: redirectURI, agreed: agreed)
            let enrolment: Enrolment
            do throws(DiscoveryFault) {
                enrolment = try await enroller.enrolment(for: offer, redirectURI: redirectURI)
            } catch {
                enroller.note(error)
                throw LoginError(error)
            }
            try await self.adopt(enrolment, enroller)
            return try await enroller.signingIn { () async throws(LoginError) in
                try await step(offer.metadata, offer.furtherParameters)
            }
        }
    }

    private func offer(redirectURI: String, agreed: String?) async throws(LoginError) -> SignInOffer {
        let offer = try await offer(redirectURI: redirectURI)
        let changes = agreed.map { offer.changes(since: $0) } ?? []
        guard changes.isEmpty else { throw .offerChanged(changes) }
        return offer
    }

    /// Saves the enrolment of a sign-in in the record. Call only in `holdingStore`.
    private func adopt(_ enrolment: Enrolment, _ enroller: Enroller) async throws(LoginError) {
        // Another process may have stored newer tokens with another enrolment.
        await readAhead()
        guard enroller.begun?.isLike(enrolment) != true else { return }
        let stored = (try? await store.load(client: recordName))?.revision ?? 0
        guard let new = apply({ $0.enrolled(enrolment, over: stored, $1) }) else { throw .stopped }
        let saved = await save(new)
        guard !saved.isSuperseded else { throw .overtaken }
        apply { $0.resaved(new, fault: saved.fault, $1) }
    }

    /// Checks, in `holdingStore` and before sending a code, that the enrolment has not changed since the sign-in began.
    /// - Parameter digest: `Enrolment.digest` when the sign-in began.
    func checkEnrolment(_ digest: String?) async throws(LoginError) {
        guard let enroller = requests.enroller else { return }
        // The login may have begun at another process.
        await readAhead()
        guard try enroller.digestOfBegun() == digest else { throw .reconfigured }
    }
}

extension TokenRequests {
    /// Finds server and client for a grant. Before a refresh, only checks that the API still names the server.
    /// - Throws: `TokenEndpointFault.discovery`
    func enrol(for kind: TokenLifeCycle.FetchKind) async throws(TokenEndpointFault) {
        guard let enroller else { return }
        do throws(DiscoveryFault) {
            guard kind == .grant else { return try await enroller.confirm(directory) }
            let offer = try await enroller.offer(directory, grant: grant.type, redirectURI: nil)
            let enrolment = try await enroller.enrolment(for: offer, redirectURI: nil)
            if enroller.enrolment?.isLike(enrolment) != true { enroller.use(enrolment) }
        } catch { throw .discovery(error) }
    }
}
