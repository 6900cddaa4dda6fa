typealias Instant = ContinuousClock.Instant

/// The decisions of a small authorization server (RFC 6749), without I/O or a clock. It knows one client and one user,
/// issues random access tokens, and rotates refresh tokens. Its memory is bounded.
struct AuthorizationServer: Sendable {
    /// Number of a login. All tokens of the login carry its number, so that they can be revoked together.
    typealias Family = UInt64

    /// The rights of an access token or a refresh token.
    struct Grant: Sendable {
        let family: Family
        let scope: String
        /// Whether the refresh token was used. A second use shows that two parties hold the token (RFC 9700, 4.14.2).
        var isSpent = false
    }

    static let scopes = ["read", "write"]

    private let credentials: PlaygroundCredentials
    private var accessTokens = TokenTable<Grant>(lifetime: .seconds(20), capacity: 10_000)
    private var refreshTokens = TokenTable<Grant>(lifetime: .seconds(3600), capacity: 10_000)
    var signIns = SignInGrants()
    var registrations = ClientRegistrations()
    private var lastFamily: Family = 0

    init(credentials: PlaygroundCredentials) { self.credentials = credentials }

    /// Returns the grant of an access token; `nil` if the token is unknown, expired or revoked.
    func grant(forAccessToken token: String, now: Instant) -> Grant? { accessTokens.grant(for: token, now: now) }

    /// `POST /token`.
    mutating func token(
        form: FormParameters, client: PresentedCredentials, now: Instant
    ) throws(ErrorAnswer) -> IssuedToken {
        if !isRegistered(form, client, now: now) { try authenticate(client) }
        let grantType = try form.required("grant_type")
        guard let scope = Self.known(scope: form["scope"]) else { throw .invalidScope }
        switch grantType {
        case "client_credentials":
            // This grant gets no refresh token: RFC 6749, section 4.4.3.
            return issue(nextFamily(), scope, refresh: false, now: now)
        case "password":
            guard let username = form["username"], let password = form["password"] else {
                throw .invalidRequest("The parameters username and password are needed.")
            }
            let goodName = username.isEqualInConstantTime(to: credentials.username)
            let goodPassword = password.isEqualInConstantTime(to: credentials.password)
            guard goodName, goodPassword else { throw .invalidGrant("Wrong user name or password.") }
            return issue(nextFamily(), scope, now: now)
        case "refresh_token": return try refresh(try form.required("refresh_token"), requested: form["scope"], now: now)
        case "authorization_code": return try exchange(form, now: now)
        case "urn:ietf:params:oauth:grant-type:device_code":
            let granted = try signIns.redeemDevice(try form.required("device_code"), now: now)
            return issue(nextFamily(), granted, now: now)
        default: throw .unsupportedGrantType
        }
    }

    /// Exchanges a code (RFC 6749, section 4.1.3). A second use revokes the tokens from the first use (4.1.2).
    private mutating func exchange(_ form: FormParameters, now: Instant) throws(ErrorAnswer) -> IssuedToken {
        guard let code = form["code"], let verifier = form["code_verifier"], let redirectURI = form["redirect_uri"]
        else { throw .invalidRequest("The parameters code, redirect_uri and code_verifier are needed.") }
        guard let known = signIns.codes.grant(for: code, now: now) else {
            throw .invalidGrant("The code is unknown or expired.")
        }
        if let family = known.family {
            forget(family)
            throw .invalidGrant("The code was used before; all tokens of its sign-in are revoked.")
        }
        let family = nextFamily()
        signIns.codes.update(code) { $0.family = family }
        if let id = form["client_id"], id != known.question.client {
            throw .invalidGrant("The code is for another client.")
        }
        guard known.question.redirectURI == redirectURI, SignInGrants.verifies(verifier, known.question.challenge)
        else { throw .invalidGrant("The code is for another redirect_uri or code_verifier.") }
        return issue(family, known.question.scope, now: now)
    }

    /// `POST /device_authorization` (RFC 8628, section 3.1).
    mutating func beginDevice(
        form: FormParameters, client: PresentedCredentials, now: Instant
    ) throws(ErrorAnswer) -> SignInGrants.DeviceCodes {
        try authenticate(client)
        guard let scope = Self.known(scope: form["scope"]) else { throw .invalidScope }
        return signIns.beginDevice(scope: scope, now: now)
    }

    func knows(client id: String, now: Instant) -> Bool {
        id.isEqualInConstantTime(to: credentials.clientID) || registrations.knows(id, now: now)
    }

    /// Whether a registered client has this redirect URI. Other clients may use any.
    func permits(_ redirectURI: String, client id: String, now: Instant) -> Bool {
        registrations.client(id, now: now).map { $0.redirectURIs.contains(redirectURI) } ?? true
    }

    func name(ofClient id: String, now: Instant) -> String { registrations.client(id, now: now)?.name ?? id }

    /// Whether a registered client requests tokens after a sign-in. All other token requests require a secret.
    private func isRegistered(_ form: FormParameters, _ client: PresentedCredentials, now: Instant) -> Bool {
        client == .none(basic: false) && namesRegistered(form, now: now)
            && ["authorization_code", "refresh_token"].contains(form["grant_type"])
    }

    private func namesRegistered(_ form: FormParameters, now: Instant) -> Bool {
        form["client_id"].map { registrations.knows($0, now: now) } ?? false
    }

    /// Returns the requested scope, by default `read`; `nil` if one of its names is unknown.
    static func known(scope: String?) -> String? {
        guard let scope else { return "read" }
        return scope.split(separator: " ").allSatisfy { scopes.contains(String($0)) } ? scope : nil
    }

    /// `POST /revoke` (RFC 7009): revokes the token and all tokens of the same login. An unknown token is no error.
    mutating func revoke(form: FormParameters, client: PresentedCredentials, now: Instant) throws(ErrorAnswer) {
        if !namesRegistered(form, now: now) { try authenticate(client) }
        let token = try form.required("token")
        let grant = refreshTokens.grant(for: token, now: now) ?? accessTokens.grant(for: token, now: now)
        if let grant { forget(grant.family) }
    }

    private func authenticate(_ client: PresentedCredentials) throws(ErrorAnswer) {
        switch client {
        case .ambiguous: throw .invalidRequest("The client authenticates in more than one way.")
        case .none(let basic): throw .invalidClient(basic: basic)
        case .basic(let id, let secret), .post(let id, let secret):
            // Runs both comparisons in every case.
            let goodID = id.isEqualInConstantTime(to: credentials.clientID)
            let goodSecret = secret.isEqualInConstantTime(to: credentials.clientSecret)
            if goodID, goodSecret { return }
            let isBasic = if case .basic = client { true } else { false }
            throw .invalidClient(basic: isBasic)
        }
    }

    private mutating func refresh(
        _ token: String, requested: String?, now: Instant
    ) throws(ErrorAnswer) -> IssuedToken {
        guard let grant = refreshTokens.grant(for: token, now: now) else {
            throw .invalidGrant("The refresh token is unknown, expired or revoked.")
        }
        guard !grant.isSpent else {
            forget(grant.family)
            throw .invalidGrant("The refresh token was used before; all tokens of its sign-in are revoked.")
        }
        let granted = Set(grant.scope.split(separator: " "))
        if let requested, !granted.isSuperset(of: requested.split(separator: " ")) { throw .invalidScope }
        refreshTokens.update(token) { $0.isSpent = true }
        return issue(grant.family, requested ?? grant.scope, now: now)
    }

    private mutating func issue(_ family: Family, _ scope: String, refresh: Bool = true, now: Instant) -> IssuedToken {
        let token = IssuedToken(
            accessToken: RandomText.make(), expiresIn: accessTokens.lifetime,
            refreshToken: refresh ? RandomText.make() : nil, scope: scope)
        accessTokens.insert(token.accessToken, Grant(family: family, scope: scope), now: now)
        if let other = token.refreshToken { refreshTokens.insert(other, Grant(family: family, scope: scope), now: now) }
        return token
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
