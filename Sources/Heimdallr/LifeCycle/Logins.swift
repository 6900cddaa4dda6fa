/// Login that is being saved, and looks at the store for logins elsewhere.
struct Logins: Sendable {
    struct Pending: Sendable {
        let id: TokenLifeCycle.LoginID
        let token: AccessToken
        let signIn: SignIn?
        let refreshLife: RefreshLife?
    }

    private(set) var pending: Pending?
    private var nextID: TokenLifeCycle.LoginID = 1
    /// Time of the last look into the store for a login at another process.
    private var lookedAt: ContinuousClock.Instant?

    private static let lookPause = Duration.seconds(5)

    /// Begins to save the login's record. An earlier login is void.
    mutating func begin(_ token: AccessToken, as signIn: SignIn?, _ life: RefreshLife?) -> TokenLifeCycle.LoginID {
        defer { nextID += 1 }
        pending = Pending(id: nextID, token: token, signIn: signIn, refreshLife: life)
        return nextID
    }

    /// - Returns: the login; `nil` after `forget`, or after a later login.
    mutating func end(_ id: TokenLifeCycle.LoginID) -> Pending? {
        guard let login = pending, login.id == id else { return nil }
        pending = nil
        return login
    }

    mutating func forget() { pending = nil }

    /// Whether it is time for another look, which is then taken.
    mutating func mayLook(now: ContinuousClock.Instant) -> Bool {
        guard lookedAt.map({ now - $0 >= Self.lookPause }) ?? true else { return false }
        lookedAt = now
        return true
    }
}
