// Logins: how a person gives a client its first token. Any thread.
extension Heimdallr {
    /// `nil`: the client gets its tokens without a person.
    public var loginMethod: LoginMethod? { exchange.grant.loginMethod }

    /// Begins a login at a browser (`.browser` and `.implicit`): finds the endpoints, pushes the request where that is
    /// offered (RFC 9126), and makes `state`, `nonce` and verifier.
    /// - Parameter redirectURI: absolute, without a fragment; https, http on loopback, or a private scheme (RFC 8252).
    /// - Throws: `LoginError`; nothing has changed then.
    public func beginLogin(redirectURI: String) async throws(LoginError) -> LoginAttempt {
        throw .wrongMethod
    }

    /// Ends a login at a browser. Checks that the answer is for this attempt, exchanges the code, verifies the id token,
    /// makes the token durable and uses it from then on. Call it once for each attempt.
    /// - Parameter url: the whole URL that the server sent the browser to, query or fragment included.
    /// - Throws: `LoginError`; nothing has been stored then.
    public func finishLogin(_ attempt: LoginAttempt, redirectedTo url: String) async throws(LoginError) {
        throw .wrongMethod
    }

    /// Begins a login on another device: RFC 8628 section 3.1.
    /// - Throws: `LoginError`; nothing has changed then.
    public func beginDeviceLogin() async throws(LoginError) -> DeviceLogin {
        throw .wrongMethod
    }

    /// Asks until there is an outcome, at the pace that the server wants; ends when its task is cancelled.
    /// - Throws: `LoginError`; nothing has been stored then.
    public func finishDeviceLogin(_ login: DeviceLogin) async throws(LoginError) {
        throw .wrongMethod
    }

    /// The password grant with what a person typed in; only the tokens are kept.
    /// - Throws: `LoginError`; nothing has been stored then.
    public func login(username: String, password: Secret) async throws(LoginError) {
        throw .wrongMethod
    }

    /// A new token as soon as may be, without waiting for the old one's end. No-op for a client that needs a login.
    public func refreshNow() {}
}
