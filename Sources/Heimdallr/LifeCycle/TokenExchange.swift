/// Token requests of one client: builds them, and reads what comes back. Keeps no state.
struct TokenExchange: Sendable {
    let configuration: HeimdallrConfiguration
    let credentials: any OAuthClientCredentials
    let grant: any OAuthAuthorizationGrant
    let parser: any OAuthAccessTokenParser
    let httpClient: any HTTPClient

    /// A request ready to go, and what must not be seen of it.
    struct Prepared: Sendable {
        var request: HTTPRequest
        var secrets: [Secret]
        /// As sent.
        var grantType: String
        /// The refresh token that was handed in, where the grant is one.
        var seed: Secret?
    }

    /// What every grant sends, the client's authentication included; secrets are read now.
    /// - Throws: `SecretProviderError`
    func prepare(_ kind: TokenLifeCycle.FetchKind) async throws(SecretProviderError) -> Prepared {
        var request = TokenRequest()
        let grantType: String
        var seed: Secret?
        do {
            switch kind {
            case .grant:
                grantType = grant.type
                request.form = try await grant.parameters().filter { $0.name != "grant_type" }
                if grant.needs == .freshSeed {
                    for case FormParameter.Value.secret(let secret) in request.form.map(\.value) { seed = secret }
                }
            case .refresh(let token):
                grantType = "refresh_token"
                request.form = [FormParameter("refresh_token", token)]
            }
            request.form.insert(FormParameter("grant_type", grantType), at: 0)
            addFixedParameters(to: &request, isRefresh: kind != .grant)
            for case FormParameter.Value.secret(let secret) in request.form.map(\.value) {
                request.secrets.append(secret)
            }
            request.headers = configuration.headers
            try await credentials.authenticate(&request)
        } catch let error as SecretProviderError {
            throw error
        } catch {
            // Its text may hold anything.
            throw SecretProviderError("a secret of this client could not be had")
        }
        request.headers.append(HTTPField(name: "Content-Type", value: "application/x-www-form-urlencoded"))
        if !request.headers.contains(where: { ASCII.equalIgnoringCase($0.name, "Accept") }) {
            request.headers.append(HTTPField(name: "Accept", value: "application/json"))
        }
        let message = HTTPRequest(
            method: "POST", url: configuration.tokenEndpoint, headers: request.headers,
            body: FormEncoding.body(request.form), timeout: configuration.timeout)
        return Prepared(request: message, secrets: request.secrets, grantType: grantType, seed: seed)
    }

    private func addFixedParameters(to request: inout TokenRequest, isRefresh: Bool) {
        var fixed: [FormParameter] = []
        // A refresh asks for what was granted (RFC 6749 section 6): a scope that the server had left out would be an
        // error. A refresh token from elsewhere may have been granted more than what is wanted.
        if !configuration.scope.isEmpty, !isRefresh || grant.needs == .freshSeed {
            fixed.append(FormParameter("scope", configuration.scope.joined(separator: " ")))
        }
        if let audience = configuration.audience { fixed.append(FormParameter("audience", audience)) }
        let taken = Set((request.form + fixed).map(\.name))
        request.form += fixed.filter { parameter in !request.form.contains { $0.name == parameter.name } }
        request.form += configuration.resource.map { FormParameter("resource", $0) }
        request.form += configuration.parameters.filter { !taken.contains($0.name) }
    }

    /// - Throws: nothing; what goes wrong is an outcome. Cancellation counts as a network fault.
    func perform(_ prepared: Prepared, hiding secrets: [Secret], wallClock: @Sendable () -> Int64) async
        -> TokenLifeCycle.Outcome
    {
        do {
            let response = try await httpClient.send(prepared.request)
            return read(response, hiding: prepared.secrets + secrets, wallClock: wallClock())
        } catch let error as HTTPClientError {
            return .fault(.network(error), retryAfter: nil)
        } catch {
            return .fault(.network(.other), retryAfter: nil)
        }
    }

    /// Judges by status and body; the content type is not trusted either way.
    func read(_ response: HTTPResponse, hiding secrets: [Secret], wallClock: Int64) -> TokenLifeCycle.Outcome {
        let retryAfter = RetryAfter.duration(in: response, wallClock: wallClock)
        switch response.status {
        case 200..<300:
            do {
                return .response(try parser.parse(response.body))
            } catch {
                if error == .noAccessToken, let refusal = refusal(in: response, hiding: secrets) {
                    return .fault(.refused(refusal), retryAfter: retryAfter)
                }
                return .fault(.answer(error), retryAfter: retryAfter)
            }
        case 300..<400:
            return .fault(.redirect(response.status), retryAfter: retryAfter)
        default:
            if let refusal = refusal(in: response, hiding: secrets) {
                return .fault(.refused(refusal), retryAfter: retryAfter)
            }
            return .fault(.status(response.status), retryAfter: retryAfter)
        }
    }

    func refusal(in response: HTTPResponse, hiding secrets: [Secret]) -> OAuthError? {
        guard let body = try? JSONParser.parse(response.body), let code = body["error"]?.string, !code.isEmpty else {
            return nil
        }
        func shown(_ name: String) -> String? {
            body[name]?.string.map { ServerText.sanitize($0, hiding: secrets) }
        }
        return OAuthError(
            status: response.status, code: OAuthError.Code(rawValue: ServerText.sanitize(code, hiding: secrets)),
            detail: shown("error_description"), uri: shown("error_uri"))
    }
}
