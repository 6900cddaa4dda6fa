import Heimdallr

/// Copies of logins in the store that the proxies of a fleet share. With a copy, another proxy can finish the login.
struct SharedLogins: Sendable {
    let store: any PendingLoginStore
    let clock: HeimdallrClock

    /// Limit of cookies to look up. A browser has a cookie for each login that it has begun.
    private static let mostCookies = 8

    /// Stores a copy. If this fails, only this process can finish the login.
    /// - Returns: whether the copy was stored.
    @discardableResult
    private func put(_ login: PortableLogin, key: String?, life: Duration) async -> Bool {
        guard let key else { return false }
        do { try await store.putPending(login.content, key: key, life: life) } catch { return false }
        return true
    }

    private func take(key: String?) async -> PortableLogin? {
        guard let key, let content = try? await store.takePending(key: key) else { return nil }
        return PortableLogin(content, until: clock.now() + LoginAttempts.lifetime)
    }

    // MARK: Browsers

    func put(_ attempt: LoginAttempts.Attempt) async -> Bool {
        await put(PortableLogin(attempt.login), key: Self.key(attempt), life: LoginAttempts.lifetime)
    }

    /// Takes an attempt. Its key contains a cookie that only the browser that began the attempt has.
    func take(state: String, cookies: [String: String], clients: [Heimdallr]) async -> LoginAttempts.Attempt? {
        guard !state.isEmpty else { return nil }
        let prefix = LoginAttempts.Cookie.prefix
        for (name, value) in cookies.filter({ $0.key.hasPrefix(prefix) }).prefix(Self.mostCookies) {
            let cookie = LoginAttempts.Cookie(name: name, value: Secret(value))
            let login = await take(key: PortableLogin.key(state: state, cookie: cookie.value))
            guard case .browser(let attempt)? = login?.kind, attempt.state == state,
                let client = clients.first(where: { $0.name == attempt.client })
            else { continue }
            return LoginAttempts.Attempt(
                login: attempt, client: client, cookie: cookie, ticket: nil, expiresAt: attempt.expiresAt)
        }
        return nil
    }

    /// Removes the copy of an attempt, so that no other proxy spends its code.
    /// - Returns: `false` if another proxy has already taken the copy.
    func claim(_ attempt: LoginAttempts.Attempt) async throws -> Bool {
        guard let key = Self.key(attempt) else { return true }
        return try await store.takePending(key: key) != nil
    }

    private static func key(_ attempt: LoginAttempts.Attempt) -> String? {
        attempt.cookie.flatMap { PortableLogin.key(state: attempt.login.state, cookie: $0.value) }
    }

    // MARK: Devices

    func put(_ login: DeviceLogin, ticket: String, life: Duration) async {
        await put(PortableLogin(login), key: PortableLogin.key(ticket: ticket), life: life)
    }

    /// Returns a device login that began at another proxy. The copy stays in the store for further proxies.
    /// - Returns: `nil` also if the client now has another server or account.
    func device(ticket: String, _ client: Heimdallr) async -> DeviceLogin? {
        let key = PortableLogin.key(ticket: ticket)
        guard let login = await take(key: key), case .device(let device) = login.kind, device.client == client.name
        else { return nil }
        await put(login, key: key, life: LoginAttempts.lifetime)
        return login.belongs(to: client) ? device : nil
    }
}
