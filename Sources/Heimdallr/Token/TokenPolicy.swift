internal import WireText

/// Rules that turn a token response into a usable token.
struct TokenPolicy: Sendable {
    /// Upper bound of a token's lifetime, so that deadlines can't overflow.
    static let maxLifetime = Duration.seconds(366 * 24 * 3600)
    /// Lifetime of a token without a known end.
    static let endless = maxLifetime * 50
    /// Lifetime of a token if neither its answer nor the configuration states one.
    private static let usual = Duration.seconds(300)

    /// Lifetime if the answer has none, or `endless`; `nil`: `usual`, or `endless` if only a person brings the next token.
    var defaultExpiresIn: Duration?
    var defaultTokenType: String?
    var treatAsBearer: [String]
    var requestedScope: [String]
    /// Lifetime of each token, or `endless`, in place of the server's; `nil`: the server's.
    var lifetime: Duration?
    var needsPerson = false

    /// - Parameters:
    ///   - askedAt: time at which the request was sent. The lifetime counts from this time, so it is never too long.
    ///   - refreshToken: the refresh token that was sent. It is kept if the answer has none (RFC 6749 section 6).
    ///   - granted: the scope granted before; empty: none. An answer without a scope does not change it.
    ///   - moment: the time now.
    func token(
        from response: TokenResponse, askedAt: ContinuousClock.Instant, keeping refreshToken: Secret?,
        granted: [String] = [], _ moment: Moment
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
        let kept = response.refreshToken ?? refreshToken
        let (expiresAt, endsBy) = end(of: response, askedAt, isLast: needsPerson && kept == nil, moment)
        return AccessToken(
            AccessToken.Content(
                value: response.accessToken, type: isBound ? "DPoP" : "Bearer", issuedAt: askedAt,
                expiresAt: response.endsAt.map { min($0, expiresAt) } ?? expiresAt,
                refreshToken: kept,
                scope: response.scope.map {
                    GrantedScope.keep(
                        $0, askedFor: requested, granted: granted, hiding: Self.secrets(of: response))
                } ?? (granted.isEmpty ? requested : granted),
                members: response.members, binding: response.binding, certificate: response.certificate, endsBy: endsBy)
        )
    }

    /// Returns the secrets that a server could repeat in its messages.
    private static func secrets(of response: TokenResponse) -> [Secret] {
        [response.accessToken, response.refreshToken, response.idToken].compactMap { $0 } + response.requestSecrets
    }

    /// Returns the token's end and its source.
    /// - Parameter isLast: whether only a person can bring the next token.
    private func end(
        of response: TokenResponse, _ askedAt: ContinuousClock.Instant, isLast: Bool, _ moment: Moment
    ) -> (ContinuousClock.Instant, TokenEnd) {
        func bounded(_ life: Duration) -> Duration { life == Self.endless ? life : min(life, Self.maxLifetime) }
        if let lifetime { return (askedAt + bounded(lifetime), lifetime == Self.endless ? .open : .configured) }
        if let seconds = response.expiresIn { return (askedAt + Self.duration(seconds), .stated) }
        let life = bounded(defaultExpiresIn ?? (isLast ? Self.endless : Self.usual))
        if let seconds = TokenEnd.secondsLeft(of: response.accessToken, wallClock: moment.wallClock) {
            let end = moment.now + Self.duration(seconds)
            if end < askedAt + life { return (end, .jwt) }
        }
        return (askedAt + life, life == Self.endless ? .open : .usual)
    }

    private static func duration(_ seconds: Double) -> Duration {
        guard seconds > 0 else { return .zero }
        guard seconds < Double(maxLifetime.components.seconds) else { return maxLifetime }
        return .milliseconds(Int64(seconds * 1000))
    }
}
