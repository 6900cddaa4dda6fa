internal import HTTPMessage
internal import WireText

extension Heimdallr {
    /// Sends `request` with a token in place of its own credential. After a 401 because of the token (RFC 6750 section
    /// 3.1), sends it once more with a new token, and returns the second response. If no new token comes, returns the
    /// 401. Other hosts still get the old token.
    /// - Parameters:
    ///   - request: the request without a token.
    ///   - limit: longest wait for the first token, and for the new token.
    ///   - send: sends the request. Called once or twice, in the caller's isolation; with DPoP, again for each nonce.
    /// - Throws: `HeimdallrError` if no token comes, or the error of `send`.
    nonisolated(nonsending) public func authenticateRequest(
        _ request: HeimdallrHTTPRequest, waiting limit: Duration = .seconds(30),
        send: nonisolated(nonsending) (HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse
    ) async throws -> HeimdallrHTTPResponse {
        try await withToken(for: WebURL.origin(of: request.url), waiting: limit) { token in
            var signed = request
            put(token, on: &signed)
            let answer = try await send(signed)
            guard token.binding != nil, let binding = requests.binding else { return answer }
            binding.note(answer, from: request.url)
            guard let values = Self.challenges(answer), Challenge.wantNonce(values.map { Array($0.utf8) }),
                answer.header(DPoPNonce.field) != nil
            else { return answer }
            // The resource only required a nonce, and did not check the token (RFC 9449 section 9).
            signed = request
            put(token, on: &signed)
            let second = try await send(signed)
            binding.note(second, from: request.url)
            return second
        } challenges: {
            Self.challenges($0)
        }
    }

    private static func challenges(_ answer: HeimdallrHTTPResponse) -> [String]? {
        guard answer.status == 401 else { return nil }
        return answer.headers.filter { ASCII.equalIgnoringCase($0.name, "WWW-Authenticate") }.map(\.value)
    }

    /// Puts the token on a request, with a proof if the token is bound to a key.
    func put(_ token: AccessToken, on request: inout HeimdallrHTTPRequest) {
        authenticator.authenticate(&request, with: token)
        guard let key = token.binding, let binding = requests.binding else { return }
        request.headers.removeAll { ASCII.equalIgnoringCase($0.name, "DPoP") }
        let (method, url) = (request.method, request.url)
        // Without randomness or memory there is no proof. The resource then refuses the request.
        guard let proof = try? binding.proof(by: key, method: method, url: url, token: token) else { return }
        request.headers.append(proof)
    }

    /// Does the same as `authenticateRequest(_:waiting:send:)`, for a request of any type.
    /// - Parameters:
    ///   - request: the request without a token.
    ///   - resource: a name for the resource, from a small set of names: for example the origin.
    ///   - limit: longest wait for the first token, and for the new token.
    ///   - put: puts the credential on a request.
    ///   - send: sends the request. Called once or twice.
    ///   - challenges: returns the values of `WWW-Authenticate` of a 401; `nil` for any other response.
    /// - Throws: `HeimdallrError` if no token comes, or the error of `send`.
    nonisolated(nonsending) public func authenticateRequest<Request, Answer>(
        _ request: Request, to resource: String, waiting limit: Duration = .seconds(30),
        put: (RequestCredential, inout Request) -> Void,
        send: nonisolated(nonsending) (Request) async throws -> Answer,
        challenges: (Answer) -> [String]?
    ) async throws -> Answer {
        try await withCredential(
            for: resource, waiting: limit,
            send: { credential in
                var request = request
                put(credential, &request)
                return try await send(request)
            }, challenges: challenges)
    }

    /// Does the same as `authenticateRequest(_:waiting:send:)`, but `send` gets the credential and makes the request.
    /// - Parameters:
    ///   - resource: a name for the resource, from a small set of names. Not needed for a client with one resource.
    ///   - limit: longest wait for the first token, and for the new token.
    ///   - send: sends a new request with the credential. Called once or twice.
    ///   - challenges: returns the values of `WWW-Authenticate` of a 401; `nil` for any other response.
    /// - Throws: `HeimdallrError` if no token comes, or the error of `send`.
    nonisolated(nonsending) public func withCredential<Answer>(
        for resource: String = "", waiting limit: Duration = .seconds(30),
        send: nonisolated(nonsending) (RequestCredential) async throws -> Answer,
        challenges: (Answer) -> [String]?
    ) async throws -> Answer {
        try await withToken(
            for: resource, waiting: limit, send: { try await send(authenticator.credential(for: $0)) },
            challenges: challenges)
    }

    nonisolated(nonsending) private func withToken<Answer>(
        for resource: String, waiting limit: Duration,
        send: nonisolated(nonsending) (AccessToken) async throws -> Answer,
        challenges: (Answer) -> [String]?
    ) async throws -> Answer {
        let token = try await token(for: resource, waiting: limit)
        let answer = try await send(token)
        guard judge(challenges(answer), of: token, at: resource, isReplay: false) else { return answer }
        // Without a new token, the caller gets the first response.
        guard let fresh = try? await accessToken(for: resource, insteadOf: token, before: clock.now() + limit) else {
            return answer
        }
        let second = try await send(fresh)
        _ = judge(challenges(second), of: fresh, at: resource, isReplay: true)
        return second
    }

    /// Longest wait for a new token while the current token is suspect. After that, the request gets the suspect token.
    private static let suspectWait = Duration.seconds(2)

    private func token(for resource: String, waiting limit: Duration) async throws(HeimdallrError) -> AccessToken {
        if let token = currentToken(for: resource) { return token }
        guard let doubted = currentToken() else {
            return try await accessToken(for: resource, before: clock.now() + limit)
        }
        let fresh = try? await accessToken(for: resource, before: clock.now() + min(limit, Self.suspectWait))
        return fresh ?? doubted
    }

    /// - Parameter challenges: the challenges of a 401; `nil` for any other response.
    /// - Returns: whether to send the request again.
    private func judge(_ challenges: [String]?, of token: AccessToken, at resource: String, isReplay: Bool) -> Bool {
        guard let values = challenges?.map({ Array($0.utf8) }) else {
            accepted(token, by: resource, isReplay: isReplay)
            return false
        }
        // A challenge with another scheme or another error says nothing about the token.
        let scheme = token.binding == nil ? Challenge.bearer : Challenge.dpop
        guard Challenge.rejectsToken(values, of: scheme) else { return false }
        return refused(
            token, by: resource, saysInvalid: Challenge.hasInvalidTokenError(values, of: scheme), isReplay: isReplay)
    }
}
