internal import WireText

/// Rules that turn a token response into a usable token.
struct TokenPolicy: Sendable {
    /// Upper bound of a token's lifetime, so that deadlines can't overflow.
    static let maxLifetime = Duration.seconds(366 * 24 * 3600)

    var defaultExpiresIn: Duration
    var defaultTokenType: String?
    var treatAsBearer: [String]
    var requestedScope: [String]

    /// - Parameters:
    ///   - askedAt: time at which the request was sent. The lifetime counts from this time, so it is never too long.
    ///   - refreshToken: the refresh token that was sent. It is kept if the answer has none (RFC 6749 section 6).
    ///   - granted: the scope granted before; empty: none. An answer without a scope does not change it.
    func token(
        from response: TokenResponse, askedAt: ContinuousClock.Instant, keeping refreshToken: Secret?,
        granted: [String] = []
    ) throws(TokenResponseError) -> AccessToken {
        guard response.accessToken.isVisible else { throw .badAccessToken }
        guard let type = response.tokenType ?? defaultTokenType else { throw .noTokenType }
        let isBound = response.binding != nil
        let accepted = isBound ? ["DPoP"] : ["Bearer"] + treatAsBearer
        guard accepted.contains(where: { ASCII.equalIgnoringCase($0, type) }) else {
            if ASCII.equalIgnoringCase(type, "N_A") { throw .notAnAccessToken }
            if isBound { throw .notBound }
            throw .unknownTokenType(ServerText.sanitize(type, hiding: Self.secrets(of: response)))
        }
        let requested = requestedScope.isEmpty ? response.enrolment?.scope ?? [] : requestedScope
        let expiresAt = askedAt + lifetime(response.expiresIn)
        return AccessToken(
            AccessToken.Content(
                value: response.accessToken, type: isBound ? "DPoP" : "Bearer", issuedAt: askedAt,
                expiresAt: response.endsAt.map { min($0, expiresAt) } ?? expiresAt,
                refreshToken: response.refreshToken ?? refreshToken,
                scope: response.scope.map {
                    GrantedScope.keep($0, askedFor: requested + granted, hiding: Self.secrets(of: response))
                } ?? (granted.isEmpty ? requested : granted),
                members: response.members, binding: response.binding, certificate: response.certificate))
    }

    /// Returns the secrets that a server could repeat in its messages.
    private static func secrets(of response: TokenResponse) -> [Secret] {
        [response.accessToken, response.refreshToken, response.idToken].compactMap { $0 } + response.requestSecrets
    }

    private func lifetime(_ seconds: Double?) -> Duration {
        guard let seconds else { return min(defaultExpiresIn, Self.maxLifetime) }
        guard seconds > 0 else { return .zero }
        guard seconds < Double(Self.maxLifetime.components.seconds) else { return Self.maxLifetime }
        return .milliseconds(Int64(seconds * 1000))
    }
}
