internal import WireText

/// Builds the token requests of one client, and reads their answers.
struct TokenRequests: Sendable {
    let settings: HeimdallrConfiguration
    let credentials: any OAuthClientCredentials
    var grant: any OAuthAuthorizationGrant
    var parser: any OAuthAccessTokenParser
    let httpClient: LimitedHTTPClient
    let directory: EndpointDirectory
    /// Key and nonces for DPoP; `nil`: Bearer tokens.
    let binding: DPoPBinding?
    /// Finds the server and registers the client; `nil`: the configuration names both.
    let enroller: Enroller?
    let trace = TokenRequestTrace()

    /// The settings, with the current enrolment applied, and the issuer as its server spells it.
    var configuration: HeimdallrConfiguration {
        var configuration = enroller?.applied(to: settings) ?? settings
        configuration.issuer = directory.spelling(of: configuration.issuer)
        return configuration
    }

    struct Prepared: Sendable {
        var request: HeimdallrHTTPRequest
        var secrets: [Secret]
        /// The `grant_type` parameter that is sent.
        var grantType: String
        /// The configured refresh token, if the request sends it as the grant.
        var seed: Secret?
        /// Builds the request again with new one-time credentials. Sends nothing: the caller may hold a slot, and a
        /// further request would wait for another slot.
        var remake: (@Sendable () async throws(TokenEndpointFault) -> Prepared)?
        /// Key of the request's DPoP proof.
        var key: DPoPKey?
        /// Server and client of the request; `nil`: the configuration names both.
        var enrolment: Enrolment?
    }

    /// Builds a token request, and reads the secrets for it.
    /// - Parameters:
    ///   - known: the token endpoint, if it is known.
    ///   - scope: the scope of a refresh.
    /// - Throws: `TokenEndpointFault.secret` or `.discovery`
    func prepare(
        _ kind: TokenLifeCycle.FetchKind, to known: String? = nil, scope: [String] = []
    ) async throws(TokenEndpointFault) -> Prepared {
        try await enrol(for: kind)
        switch kind {
        case .grant:
            let endpoint = try await tokenEndpoint(known)
            let configuration = configuration
            var request = GrantRequest(
                tokenEndpoint: endpoint, issuer: configuration.issuer, client: credentials.identifier)
            request.resource = configuration.resource
            request.scope = configuration.scope
            if let own = grant.ownRequest { return try await prepare(own, request) }
            let form = try await readingSecrets { try await grant.parameters(for: request) }
            let sendsScope = grant.needs != .freshSeed || configuration.refreshesWithScope
            var prepared = try await prepare(
                grantType: grant.type, form, scope: sendsScope ? configuration.scope : [], to: endpoint)
            if grant.needs == .freshSeed {
                for case FormParameter.Value.secret(let secret) in form.map(\.value) { prepared.seed = secret }
            }
            // The grant's credential may work only once, so a second request needs a new one.
            prepared.remake = { () async throws(TokenEndpointFault) in try await prepare(.grant, to: endpoint) }
            return prepared
        case .refresh(let token):
            return try await prepare(
                grantType: "refresh_token", [FormParameter("refresh_token", token)], scope: scope)
        }
    }

    /// Builds a request that is no form, and authenticates the client itself.
    private func prepare(
        _ form: any OwnTokenRequest, _ request: GrantRequest
    ) async throws(TokenEndpointFault) -> Prepared {
        let (own, secrets) = try await readingSecrets { try await form.message(for: request) }
        var message = own
        message.timeout = configuration.timeout
        message.headers += configuration.headers.filter { field in
            !own.headers.contains { ASCII.equalIgnoringCase($0.name, field.name) }
        }
        var prepared = Prepared(request: message, secrets: secrets, grantType: grant.type)
        prepared.remake = { () async throws(TokenEndpointFault) in try await prepare(form, request) }
        return prepared
    }

    /// Builds a token request of any grant type.
    /// - Throws: `TokenEndpointFault.secret` or `.discovery`
    func prepare(
        grantType: String, _ form: [FormParameter], scope: [String], to endpoint: String? = nil
    ) async throws(TokenEndpointFault) -> Prepared {
        let own = [FormParameter("grant_type", grantType)] + form.filter { $0.name != "grant_type" }
        return try await prepare(
            self.form(of: RequestStep(grantType: grantType), own, scope: scope), to: try await tokenEndpoint(endpoint),
            grantType: grantType)
    }

    /// - Parameter form: all parameters except the client's authentication.
    private func prepare(
        _ form: [FormParameter], to url: String, grantType: String
    ) async throws(TokenEndpointFault) -> Prepared {
        let enrolment = enroller?.enrolment
        let request = try await authenticated(form, tokenEndpoint: url)
        var prepared = Prepared(
            request: message(request, to: url), secrets: request.secrets, grantType: grantType, enrolment: enrolment)
        prepared.remake = { () async throws(TokenEndpointFault) in
            try await prepare(form, to: url, grantType: grantType)
        }
        guard let binding else { return prepared }
        try await readingSecrets {
            let key = try await binding.key()
            prepared.key = key
            prepared.request.headers.append(
                try binding.proof(by: key, method: prepared.request.method, url: url, token: nil))
        }
        return prepared
    }

    private func tokenEndpoint(_ known: String? = nil) async throws(TokenEndpointFault) -> String {
        if let known { return known }
        do throws(DiscoveryFault) { return try await directory.url(.token) } catch { throw .discovery(error) }
    }

    /// Adds the client's authentication to a form.
    /// - Parameter tokenEndpoint: `nil` if unknown. It is then discovered, if the credentials need it.
    /// - Throws: `TokenEndpointFault.secret` or `.discovery`
    func authenticated(
        _ form: [FormParameter], tokenEndpoint: String? = nil
    ) async throws(TokenEndpointFault) -> TokenRequest {
        var request = TokenRequest(form: form, headers: configuration.headers)
        request.issuer = configuration.issuer
        request.tokenEndpoint = tokenEndpoint
        if tokenEndpoint == nil, credentials.needsTokenEndpoint {
            request.tokenEndpoint = try await self.tokenEndpoint()
        }
        for case FormParameter.Value.secret(let secret) in form.map(\.value) { request.secrets.append(secret) }
        return try await readingSecrets {
            try await credentials.authenticate(&request)
            trace.note(request)
            return request
        }
    }

    private func readingSecrets<Result>(_ body: () async throws -> Result) async throws(TokenEndpointFault) -> Result {
        do {
            return try await body()
        } catch let error as SecretProviderError {
            throw .secret(error)
        } catch {
            // The error's text may contain a secret.
            throw .secret(SecretProviderError("a secret of this client is unavailable"))
        }
    }

    func message(_ ready: TokenRequest, to url: String) -> HeimdallrHTTPRequest {
        var request = ready
        request.headers.append(HeimdallrHTTPField(name: "Content-Type", value: "application/x-www-form-urlencoded"))
        request.headers = HeimdallrHTTPField.accepting("application/json", request.headers)
        return HeimdallrHTTPRequest(
            method: "POST", url: url, headers: request.headers, content: FormEncoding.body(request.form),
            timeout: configuration.timeout)
    }

    /// Waits for a slot. After a wait, builds the request again: its assertions and proofs may have expired.
    /// - Returns: `nil` when the task was cancelled. The caller releases the slot.
    /// - Throws: `TokenEndpointFault.secret` or `.discovery`
    func slot(for prepared: inout Prepared) async throws(TokenEndpointFault) -> TokenRequestLimiter.Slot? {
        guard let slot = await httpClient.slot(for: prepared.request.url) else { return nil }
        guard slot.hasWaited, let remake = prepared.remake else { return slot }
        do throws(TokenEndpointFault) {
            prepared = try await remake()
            return slot
        } catch {
            httpClient.release(slot)
            throw error
        }
    }

    /// Sends the request, and once more if the server requires a DPoP nonce. The caller holds the slot. Cancellation
    /// counts as a network fault.
    func perform(_ prepared: Prepared, hiding secrets: [Secret], wallClock: @Sendable () -> Int64) async
        -> TokenLifeCycle.Outcome
    {
        var prepared = prepared
        trace.note(address: prepared.request.url)
        // Read before connecting, so that the token is never recorded as bound to a later certificate.
        var certificate = configuration.certificate?()
        do {
            var response = try await httpClient.inner.send(prepared.request)
            if let binding, prepared.key != nil {
                binding.note(response, from: prepared.request.url)
                if isNonceWanted(response), binding.nonce(for: prepared.request.url) != nil,
                    let remake = prepared.remake
                {
                    // The server has used no credential (RFC 9449 section 8). The next request has new ones.
                    do throws(TokenEndpointFault) {
                        prepared = try await remake()
                    } catch { return .fault(error, retryAfter: nil) }
                    certificate = configuration.certificate?()
                    response = try await httpClient.inner.send(prepared.request)
                    binding.note(response, from: prepared.request.url)
                }
            }
            if response.status == 404 { directory.doubt() }
            let outcome = read(
                response, hiding: prepared.secrets + secrets, wallClock: wallClock(),
                isRefresh: prepared.grantType == "refresh_token")
            if case .fault(.refused(let error), _) = outcome, error.code == .invalidClient,
                enroller?.clientRefused() == true
            {
                return .fault(.discovery(.clientForgotten), retryAfter: nil)
            }
            guard case .response(var answer) = outcome else { return outcome }
            answer.binding = prepared.key
            answer.certificate = certificate
            answer.enrolment = prepared.enrolment
            return .response(answer)
        } catch {
            directory.doubt()
            return .fault(.network(error as? HeimdallrHTTPClientError ?? .other), retryAfter: nil)
        }
    }

    private func isNonceWanted(_ response: HeimdallrHTTPResponse) -> Bool {
        (400..<500).contains(response.status) && refusal(in: response, hiding: [])?.code.rawValue == DPoPNonce.error
    }
}
