/// The decisions of a small authorization server (RFC 6749), without I/O or a clock. It knows one client and one user,
/// issues random access tokens, and rotates refresh tokens. Its memory is bounded.
struct AuthorizationServer: Sendable {
    /// One login. All tokens that descend from it carry its number, so that they can be revoked together.
    typealias Family = UInt64

    struct AccessGrant: Sendable, Equatable {
        let family: Family
        let scope: String
    }

    struct RefreshGrant: Sendable {
        let family: Family
        let scope: String
        /// Used once already. A second use shows that two parties hold it (RFC 9700, section 4.14.2).
        var spent = false
    }

    static let scopes: Set<String> = ["read", "write"]
    static let defaultScope = "read"

    private let credentials: PlaygroundCredentials
    private var accessTokens: TokenTable<AccessGrant>
    private var refreshTokens: TokenTable<RefreshGrant>
    var signIns = SignInGrants()
    var registrations = ClientRegistrations()
    private var lastFamily: Family = 0

    init(credentials: PlaygroundCredentials, tokenLifetime: Duration = .seconds(20), capacity: Int = 10_000) {
        self.credentials = credentials
        accessTokens = TokenTable(lifetime: tokenLifetime, capacity: capacity)
        refreshTokens = TokenTable(lifetime: .seconds(3600), capacity: capacity)
    }

    /// The grant of an access token; `nil` when it is unknown, expired or revoked.
    func grant(forAccessToken token: String, now: ContinuousClock.Instant) -> AccessGrant? {
        accessTokens.grant(for: token, now: now)
    }

    /// `POST /token`.
    mutating func token(
        form: FormParameters, client: ClientAuthentication, now: ContinuousClock.Instant
    ) -> Result<IssuedToken, OAuthError> {
        if !isRegistered(form, client, now: now), let error = refusal(of: client) { return .failure(error) }
        guard let grantType = form["grant_type"] else {
            return .failure(.invalidRequest("The parameter grant_type is missing."))
        }
        let requested = form["scope"]
        guard Self.known(scope: requested) != nil else { return .failure(.invalidScope) }
        switch grantType {
        case "client_credentials":
            // No refresh token for this grant: RFC 6749, section 4.4.3.
            return .success(
                issue(family: nextFamily(), scope: requested ?? Self.defaultScope, refresh: false, now: now))
        case "password":
            guard let username = form["username"], let password = form["password"] else {
                return .failure(.invalidRequest("The parameters username and password are needed."))
            }
            let goodName = username.isEqualInConstantTime(to: credentials.username)
            let goodPassword = password.isEqualInConstantTime(to: credentials.password)
            guard goodName, goodPassword else { return .failure(.invalidGrant("Wrong user name or password.")) }
            return .success(issue(family: nextFamily(), scope: requested ?? Self.defaultScope, refresh: true, now: now))
        case "refresh_token":
            guard let token = form["refresh_token"] else {
                return .failure(.invalidRequest("The parameter refresh_token is missing."))
            }
            return refresh(token, requested: requested, now: now)
        case "authorization_code":
            return exchange(form, now: now)
        case "urn:ietf:params:oauth:grant-type:device_code":
            guard let code = form["device_code"] else {
                return .failure(.invalidRequest("The parameter device_code is missing."))
            }
            return signIns.exchangeDevice(code, now: now).map {
                issue(family: nextFamily(), scope: $0, refresh: true, now: now)
            }
        default:
            return .failure(.unsupportedGrantType)
        }
    }

    /// RFC 6749, section 4.1.3. A repeated code was stolen, so its tokens are revoked (section 4.1.2).
    private mutating func exchange(
        _ form: FormParameters, now: ContinuousClock.Instant
    ) -> Result<IssuedToken, OAuthError> {
        guard let code = form["code"], let verifier = form["code_verifier"], let redirectURI = form["redirect_uri"]
        else {
            return .failure(.invalidRequest("The parameters code, redirect_uri and code_verifier are needed."))
        }
        guard let known = signIns.codes.grant(for: code, now: now) else {
            return .failure(.invalidGrant("The code is unknown or expired."))
        }
        if let family = known.family {
            forget(family)
            return .failure(.invalidGrant("The code was used before; everything that came of it is revoked."))
        }
        let family = nextFamily()
        signIns.codes.update(code) { $0.family = family }
        if let id = form["client_id"], id != known.question.client {
            return .failure(.invalidGrant("The code is for another client."))
        }
        guard known.question.redirectURI == redirectURI, SignInGrants.verifies(verifier, known.question.challenge)
        else { return .failure(.invalidGrant("The code is for another redirect_uri or code_verifier.")) }
        return .success(issue(family: family, scope: known.question.scope, refresh: true, now: now))
    }

    /// `POST /device_authorization` (RFC 8628, section 3.1).
    mutating func beginDevice(
        form: FormParameters, client: ClientAuthentication, now: ContinuousClock.Instant
    ) -> Result<SignInGrants.DeviceCodes, OAuthError> {
        if let error = refusal(of: client) { return .failure(error) }
        guard let scope = Self.known(scope: form["scope"]) else { return .failure(.invalidScope) }
        return .success(signIns.beginDevice(scope: scope, now: now))
    }

    func knows(client id: String, now: ContinuousClock.Instant) -> Bool {
        id.isEqualInConstantTime(to: credentials.clientID) || registrations.knows(id, now: now)
    }

    /// Whether the client may use this redirect URI.
    func permits(_ redirectURI: String, client id: String, now: ContinuousClock.Instant) -> Bool {
        registrations.client(id, now: now).map { $0.redirectURIs.contains(redirectURI) } ?? true
    }

    func name(ofClient id: String, now: ContinuousClock.Instant) -> String {
        registrations.client(id, now: now)?.name ?? id
    }

    /// Whether a registered client sent this request. It has no secret, and may use only grants that follow a sign-in.
    private func isRegistered(
        _ form: FormParameters, _ client: ClientAuthentication, now: ContinuousClock.Instant
    ) -> Bool {
        guard client == .none(basic: false), let id = form["client_id"], registrations.knows(id, now: now) else {
            return false
        }
        return ["authorization_code", "refresh_token"].contains(form["grant_type"])
    }

    /// The scope itself, the default for an absent scope, `nil` for an unknown one.
    static func known(scope: String?) -> String? {
        guard let scope else { return defaultScope }
        return scopes.isSuperset(of: scope.split(separator: " ").map(String.init)) ? scope : nil
    }

    /// `POST /revoke` (RFC 7009): revokes the token and all tokens of the same login. An unknown token is no error.
    mutating func revoke(
        form: FormParameters, client: ClientAuthentication, now: ContinuousClock.Instant
    ) -> OAuthError? {
        if !(form["client_id"].map { registrations.knows($0, now: now) } ?? false), let error = refusal(of: client) {
            return error
        }
        guard let token = form["token"] else { return .invalidRequest("The parameter token is missing.") }
        let family =
            refreshTokens.grant(for: token, now: now)?.family ?? accessTokens.grant(for: token, now: now)?.family
        if let family { forget(family) }
        return nil
    }

    private func refusal(of client: ClientAuthentication) -> OAuthError? {
        switch client {
        case .ambiguous: return .invalidRequest("The client authenticates in more than one way.")
        case .none(let basic): return .invalidClient(basic: basic)
        case .basic(let id, let secret), .post(let id, let secret):
            // Runs both comparisons in every case.
            let goodID = id.isEqualInConstantTime(to: credentials.clientID)
            let goodSecret = secret.isEqualInConstantTime(to: credentials.clientSecret)
            if goodID, goodSecret { return nil }
            let isBasic = if case .basic = client { true } else { false }
            return .invalidClient(basic: isBasic)
        }
    }

    private mutating func refresh(
        _ token: String, requested: String?, now: ContinuousClock.Instant
    ) -> Result<IssuedToken, OAuthError> {
        guard let grant = refreshTokens.grant(for: token, now: now) else {
            return .failure(.invalidGrant("The refresh token is unknown, expired or revoked."))
        }
        guard !grant.spent else {
            forget(grant.family)
            return .failure(.invalidGrant("The refresh token was used before; everything from its login is revoked."))
        }
        let granted = Set(grant.scope.split(separator: " "))
        if let requested, !granted.isSuperset(of: requested.split(separator: " ")) {
            return .failure(.invalidScope)
        }
        refreshTokens.update(token) { $0.spent = true }
        return .success(issue(family: grant.family, scope: requested ?? grant.scope, refresh: true, now: now))
    }

    private mutating func issue(
        family: Family, scope: String, refresh: Bool, now: ContinuousClock.Instant
    ) -> IssuedToken {
        let accessToken = RandomText.make()
        accessTokens.insert(accessToken, AccessGrant(family: family, scope: scope), now: now)
        let refreshToken = refresh ? RandomText.make() : nil
        if let refreshToken {
            refreshTokens.insert(refreshToken, RefreshGrant(family: family, scope: scope), now: now)
        }
        return IssuedToken(
            accessToken: accessToken, expiresIn: accessTokens.lifetime, refreshToken: refreshToken, scope: scope)
    }

    private mutating func forget(_ family: Family) {
        accessTokens.remove { $0.family == family }
        refreshTokens.remove { $0.family == family }
    }

    private mutating func nextFamily() -> Family {
        lastFamily += 1
        return lastFamily
    }
}
