internal import WireText

/// How a token endpoint's answer becomes a token that may be used.
struct TokenPolicy: Sendable {
    /// No answer makes a token live longer; deadlines stay far from overflow.
    static let maxLifetime = Duration.seconds(366 * 24 * 3600)

    var defaultExpiresIn: Duration
    var defaultTokenType: String?
    var treatAsBearer: [String]
    var requestedScope: [String]

    /// - Parameters:
    ///   - askedAt: when the request was sent. The life of a token counts from here: never too long.
    ///   - refreshToken: the one that was spent; it stays when the answer has none (RFC 6749 section 6).
    func token(
        from response: TokenResponse, askedAt: ContinuousClock.Instant, keeping refreshToken: Secret?
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
        let expiresAt = askedAt + lifetime(response.expiresIn)
        return AccessToken(
            AccessToken.Content(
                value: response.accessToken, type: isBound ? "DPoP" : "Bearer", issuedAt: askedAt,
                expiresAt: response.endsAt.map { min($0, expiresAt) } ?? expiresAt,
                refreshToken: response.refreshToken ?? refreshToken,
                scope: response.scope.map {
                    GrantedScope.keep($0, askedFor: requestedScope, hiding: Self.secrets(of: response))
                } ?? requestedScope,
                members: response.members, binding: response.binding, certificate: response.certificate))
    }

    /// Secrets that a server could repeat in its messages.
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
