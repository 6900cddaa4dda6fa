internal import WireText

// The meaning of the server's answers.
extension TokenRequests {
    /// Reads the status and the body; the content type is ignored.
    /// - Parameter isRefresh: whether the request was a refresh, whose answer may lack the nesting of `token_member`.
    func read(
        _ response: HeimdallrHTTPResponse, hiding secrets: [Secret], wallClock: Int64, isRefresh: Bool = false
    ) -> TokenLifeCycle.Outcome {
        let limit = RateLimitFields(response, wallClock: wallClock)
        if let fault = fault(of: response, limit, hiding: secrets) { return .fault(fault, retryAfter: limit.wait) }
        do throws(TokenResponseError) {
            var answer = try parse(response.content, isRefresh: isRefresh)
            trace.noteJSON()
            answer.requestSecrets = secrets
            if !grant.usesRefreshToken, let unused = answer.refreshToken {
                answer.requestSecrets.append(unused)
                (answer.refreshToken, answer.refreshTokenExpiresIn) = (nil, nil)
            }
            guard answer.refreshToken?.isPrintable != false else { throw .badRefreshToken }
            return .response(answer)
        } catch {
            let words = error == .noAccessToken ? self.words(in: response) : nil
            let refusal = words.flatMap { $0.code == nil ? nil : refused(response, $0, limit, hiding: secrets) }
            let missing = error == .noAccessToken ? settings.tokenMember.map { TokenResponseError.noMember($0) } : nil
            return .fault(refusal ?? .answer(missing ?? error), retryAfter: limit.wait)
        }
    }

    private func parse(_ content: Secret, isRefresh: Bool) throws(TokenResponseError) -> TokenResponse {
        do throws(TokenResponseError) { return try parser.parse(content) } catch {
            guard error == .noAccessToken, isRefresh, settings.tokenMember != nil else { throw error }
            return try OAuthAccessTokenDefaultParser().parse(content)
        }
    }

    /// Returns the fault that the response's status means; `nil`: success.
    private func fault(
        of response: HeimdallrHTTPResponse, _ limit: RateLimitFields, hiding secrets: [Secret]
    ) -> TokenEndpointFault? {
        switch response.status {
        case 200..<300: return nil
        case 300..<400: return .redirect(response.status)
        default:
            let words = words(in: response)
            if words == nil, isFromBetween(response) { return .webPage(response.status) }
            return refused(response, words ?? ServerWords(.null), limit, hiding: secrets)
        }
    }

    /// Returns the fault that the server's words mean. A limit of the request rate passes, whatever the word for it.
    private func refused(
        _ response: HeimdallrHTTPResponse, _ words: ServerWords, _ limit: RateLimitFields, hiding secrets: [Secret]
    ) -> TokenEndpointFault {
        let status = response.status
        let error = OAuthError(status: status, words, hiding: secrets)
        let isLimit = status == 429 || [400, 403].contains(status) && limit.demandsWait || words.nameLimit
        // Polling for a device login has its own rules for this word (RFC 8628 section 3.5).
        if isLimit, status < 500, error.code != .slowDown { return .limited(status, words.code == nil ? nil : error) }
        return words.code == nil ? .status(status, error.detail) : .refused(error)
    }

    /// Whether another machine than the server probably answered: a web page, or not JSON from a server that sends JSON.
    private func isFromBetween(_ response: HeimdallrHTTPResponse) -> Bool {
        response.isPageInBetween || response.status == 403 && trace.facts.hasAnsweredJSON
    }

    /// Sends a request to an endpoint other than the token endpoint.
    func answer(
        to request: TokenRequest, at url: String, hiding secrets: [Secret]
    ) async throws(TokenEndpointFault) -> HeimdallrHTTPResponse {
        let response: HeimdallrHTTPResponse
        do { response = try await httpClient.send(message(request, to: url)) } catch {
            directory.doubt()
            throw .network(error as? HeimdallrHTTPClientError ?? .other)
        }
        if response.status == 404 { directory.doubt() }
        let limit = RateLimitFields(response, wallClock: directory.clock.wallClock())
        if let fault = fault(of: response, limit, hiding: secrets + request.secrets) { throw fault }
        return response
    }

    /// Returns the server's words in a JSON object or a form; `nil`: the body has another format.
    private func words(in response: HeimdallrHTTPResponse) -> ServerWords? {
        guard let body = AnswerBody.json(of: response.content).withSpan({ try? JSONParser.parse($0) }) else {
            return nil
        }
        trace.noteJSON()
        var words = ServerWords(body)
        if grant.ownRequest != nil { words.code = words.code ?? words.detail }
        return words
    }

    func refusal(in response: HeimdallrHTTPResponse, hiding secrets: [Secret]) -> OAuthError? {
        guard let words = words(in: response), words.code != nil else { return nil }
        return OAuthError(status: response.status, words, hiding: secrets)
    }
}
