import HTTPMessage

extension Heimdallr {
    /// Sends `request` with a token on it and, where the resource answers 401 because of the token, once more with a new
    /// one (RFC 6750, section 3.1). When that one is refused as well, the token is not at fault, and the 401 is the answer.
    ///
    /// - Parameters:
    ///   - limit: how long to wait for a token.
    ///   - send: one exchange with the resource; called once or twice.
    /// - Throws: `HeimdallrError` where there is no token, and what `send` throws.
    nonisolated(nonsending) public func authenticateRequest(
        _ request: HeimdallrHTTPRequest, waiting limit: Duration = .seconds(30),
        send: nonisolated(nonsending) (HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse
    ) async throws -> HeimdallrHTTPResponse {
        try await withCredential(waiting: limit) { credential in
            var request = request
            credential.put(on: &request)
            return try await send(request)
        } challenges: { response in
            guard response.status == 401 else { return nil }
            return response.headers.filter { ASCII.equalIgnoringCase($0.name, "WWW-Authenticate") }.map(\.value)
        }
    }

    /// The same for requests and answers of any kind.
    ///
    /// - Parameters:
    ///   - send: puts the credential onto a request of its own, and sends it; called once or twice.
    ///   - challenges: the values of `WWW-Authenticate` of an answer with status 401; `nil` for any other answer.
    nonisolated(nonsending) public func withCredential<Answer>(
        waiting limit: Duration = .seconds(30),
        send: nonisolated(nonsending) (RequestCredential) async throws -> Answer,
        challenges: (Answer) -> [String]?
    ) async throws -> Answer {
        let token = try await accessToken(waiting: limit)
        let answer = try await send(authenticator.credential(for: token))
        guard let found = challenges(answer), Challenge.refuseToken(found.map { Array($0.utf8) }) else {
            token.noteAccepted()
            return answer
        }
        reject(token)
        // Where no other token can be had, the answer is the one that there is.
        guard let fresh = try? await accessToken(waiting: limit), fresh.generation != token.generation else {
            return answer
        }
        let second = try await send(authenticator.credential(for: fresh))
        if challenges(second).map({ Challenge.refuseToken($0.map { Array($0.utf8) }) }) != true {
            fresh.noteAccepted()
        }
        return second
    }
}
