/// The login whose record is being saved, and the time of the last search for logins at other processes.
struct Logins: Sendable {
    struct Pending: Sendable {
        let id: TokenLifeCycle.LoginID
        let token: AccessToken
        let signIn: SignIn?
        let refreshLife: RefreshLife?
    }

    private(set) var pending: Pending?
    /// The last failed login; `nil` after a token.
    private(set) var failure: (error: LoginError, at: ContinuousClock.Instant)?
    private var nextID: TokenLifeCycle.LoginID = 1
    /// Time at which the store was last read to find a login at another process.
    private var lookedAt: ContinuousClock.Instant?

    private static let lookPause = Duration.seconds(5)

    /// Begins to save the login's record. Discards an earlier login that is not saved yet.
    mutating func begin(_ token: AccessToken, as signIn: SignIn?, _ life: RefreshLife?) -> TokenLifeCycle.LoginID {
        defer { nextID += 1 }
        pending = Pending(id: nextID, token: token, signIn: signIn, refreshLife: life)
        return nextID
    }

    /// Ends the save. Returns the login; `nil` after `forget`, or after a later login.
    mutating func end(_ id: TokenLifeCycle.LoginID) -> Pending? {
        guard let login = pending, login.id == id else { return nil }
        pending = nil
        return login
    }

    mutating func forget() { pending = nil }

    mutating func failed(_ error: LoginError, at now: ContinuousClock.Instant) { failure = (error, now) }

    mutating func forgetFailure() { failure = nil }

    /// Returns whether the store may be searched again now. If so, notes the time of the search.
    mutating func mayLook(now: ContinuousClock.Instant) -> Bool {
        guard lookedAt.map({ now - $0 >= Self.lookPause }) ?? true else { return false }
        lookedAt = now
        return true
    }
}
