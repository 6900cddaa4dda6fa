// Tokens that a person brought, from outside any fetch. Whoever performs a login holds the gate from its token request
// until `loginSaved`, so no fetch has been sent meanwhile: one that was begun still stands in line.
extension TokenLifeCycle {
    typealias LoginID = UInt64

    struct PendingLogin: Sendable {
        var id: LoginID
        var token: AccessToken
        var signIn: SignIn?
        var refreshLife: RefreshLife?
    }

    /// A login's token request goes out now.
    mutating func askedForLogin(now: Instant) { lastAskedAt = now }

    /// A login has brought a token. Nothing of it is used, and nothing of what was there is lost, before its record is
    /// saved; the caller then calls `loginSaved`.
    /// - Parameter stored: the revision of the store's record, which another process may have written.
    /// - Returns: what to save; `nil` when the life is over.
    /// - Throws: what is wrong with the token; nothing has changed then.
    mutating func loggedIn(
        _ response: TokenResponse, as signIn: SignIn?, askedAt: Instant, over stored: UInt64, now: Instant,
        wallClock: Int64
    ) throws(TokenResponseError) -> (id: LoginID, record: TokenRecord)? {
        // The refresh token of an earlier login may be another person's: it is not kept.
        let token = try settings.policy.token(from: response, askedAt: askedAt, keeping: nil)
        guard !token.isExpired(at: now) else { throw .alreadyExpired }
        guard stage != .stopped else { return nil }
        stage = .running
        let life = token.refreshToken == nil ? nil : RefreshLife(response.refreshTokenExpiresIn, from: askedAt)
        revision = max(revision, stored) + 1
        var record = TokenRecord(token, revision: revision, now: now, wallClock: wallClock)
        record.signIn = signIn
        record.refreshTokenLife = life?.record(now: now, wallClock: wallClock)
        let login = PendingLogin(id: nextLoginID, token: token, signIn: signIn, refreshLife: life)
        nextLoginID += 1
        pendingLogin = login
        return (login.id, record)
    }

    /// The record is durable, or `fault` says why it is not. The token replaces what was there.
    /// - Returns: false when all was forgotten meanwhile.
    mutating func loginSaved(
        _ id: LoginID, _ record: TokenRecord, fault: String?, now: Instant, random: () -> Double
    ) -> Bool {
        guard let login = pendingLogin, login.id == id, stage == .running else { return false }
        pendingLogin = nil
        noteSave(record, fault: fault, now: now, random: random)
        if let fetch { act(.cancelFetch(fetch.id)) }
        fetch = nil
        refreshToken = login.token.refreshToken
        refreshLife = login.refreshLife
        signIn = login.signIn
        isRefreshTokenDoubtful = false
        refusedSince = nil
        rejectionsInARow = 0
        rejectedUntil = nil
        storedGeneration = nil
        suspicions = Suspicions()
        succeeded(now: now)
        announcedNeed = false
        if login.token.isExpired(at: now) {
            if token != nil { drop(.discarded) }
            if !waiters.isEmpty { wantToken(now: now) }
        } else {
            publish(login.token, now: now, random: random)
            act(.emit(.tokenAcquired(expiresIn: now.duration(to: login.token.expiresAt), stored: false)))
        }
        tick(now: now, random: random)
        return true
    }

    /// Somebody wants a new token now: not before the minimum interval or what a server asked for has passed, but
    /// without waiting for the rest of a backoff.
    mutating func refreshNow(now: Instant, random: () -> Double) {
        guard stage == .running, fetch == nil, pendingLogin == nil, nextKind != nil else { return }
        var due = now
        if let lastAskedAt { due = max(due, lastAskedAt + settings.minInterval) }
        if let wanted = failure?.serverWants { due = max(due, wanted) }
        fetchDue = min(fetchDue ?? due, due)
        tick(now: now, random: random)
    }

    // MARK: Logins at other processes

    private static let lookPause = Duration.seconds(5)

    /// Whoever shares the store may have logged in: that is looked up, now and then, when somebody wants a token.
    mutating func lookAgain(now: Instant) {
        guard settings.needs == .person, lookedAt.map({ now - $0 >= Self.lookPause }) ?? true else { return }
        lookedAt = now
        act(.look)
    }

    /// What the store has. Nothing that is ours is given up for it, but for a record that says that there is nothing.
    /// Revisions don't tell which is later: after a logout another process may have begun to count anew.
    mutating func looked(_ record: TokenRecord?, now: Instant, wallClock: Int64, random: () -> Double) {
        guard let record, stage == .running, fetch == nil, pendingLogin == nil, token == nil || isTokenInvalid,
            refreshToken == nil, record.accessToken == nil || record.accessToken != token?.value,
            record.revision != revision, record.refreshToken == nil || record.refreshToken != spentRefreshToken,
            record.refreshToken != nil || record.accessToken(now: now, wallClock: wallClock) != nil
        else { return }
        succeeded(now: now)
        unsaved = nil
        resaveDue = nil
        storeFault = nil
        takeUp(record, now: now, wallClock: wallClock, random: random)
        if token == nil, nextKind != nil { wantToken(now: now) }
        tick(now: now, random: random)
    }

    // MARK: The refresh token's own end

    /// From when to when a refresh token is good.
    struct RefreshLife: Sendable, Equatable {
        var beganAt: Instant
        var endsAt: Instant
        var stage = Stage.quiet

        enum Stage: Sendable {
            case quiet
            /// It was used, or is about to be, to see whether that makes it live longer.
            case tried
            case announced
        }

        /// What lives shorter than this is not kept alive: that would be a token request every minute.
        private static let worthKeeping = Duration.seconds(300)

        /// No server's word makes it longer; deadlines stay far from overflow.
        private static let longest = 10 * 366 * 24 * 3600.0

        /// - Parameter seconds: as the server said; none, nothing and less mean that it has no end.
        init?(_ seconds: Double?, from askedAt: Instant) {
            guard let seconds, seconds > 0 else { return nil }
            beganAt = askedAt
            endsAt = askedAt + .milliseconds(Int64(min(seconds, Self.longest) * 1000))
        }

        init(_ record: TokenRecord.RefreshTokenLife, now: Instant, wallClock: Int64) {
            func instant(_ time: Int64) -> Instant {
                let bound = Int64(Self.longest)
                let (distance, overflow) = time.subtractingReportingOverflow(wallClock)
                return now + .seconds(overflow ? 0 : min(max(distance, -bound), bound))
            }
            beganAt = instant(record.issuedAt)
            endsAt = max(beganAt, instant(record.expiresAt))
        }

        func record(now: Instant, wallClock: Int64) -> TokenRecord.RefreshTokenLife {
            TokenRecord.RefreshTokenLife(
                issuedAt: wallClock + now.duration(to: beganAt).components.seconds,
                expiresAt: wallClock + now.duration(to: endsAt).components.seconds)
        }

        var isWorthKeeping: Bool { beganAt.duration(to: endsAt) >= Self.worthKeeping }

        /// Days before, or for a short life its last quarter.
        var warnAt: Instant { endsAt - min(.seconds(7 * 24 * 3600), beganAt.duration(to: endsAt) / 4) }
    }

    /// What an answer says about its refresh token's life. One that only gets shorter is one session's, and its end is
    /// announced once.
    func life(of response: TokenResponse, replacing old: Secret?, askedAt: Instant) -> RefreshLife? {
        guard let seconds = response.refreshTokenExpiresIn else {
            let isNew = response.refreshToken.map { $0 != old } ?? false
            return isNew ? nil : refreshLife
        }
        guard var life = RefreshLife(seconds, from: askedAt) else { return nil }
        if let refreshLife, life.endsAt <= refreshLife.endsAt + .seconds(60) {
            life.beganAt = refreshLife.beganAt
            life.stage = refreshLife.stage
        }
        return life
    }

    /// When there is something to do about the refresh token's end; `nil`: nothing, or it is being done.
    var endWarningDue: Instant? {
        guard stage == .running, settings.needs != .nobody, refreshToken != nil, let refreshLife else { return nil }
        switch refreshLife.stage {
        case .quiet: return refreshLife.warnAt
        case .tried:
            let isUnderWay = fetch != nil || (fetchDue != nil && failure == nil)
            return isUnderWay ? nil : refreshLife.warnAt
        case .announced: return nil
        }
    }

    /// Many servers make a session last longer each time its refresh token is used, and end it when it is not. So the
    /// refresh token is used once before its end, whether or not anybody wants a token. If that does not help, somebody
    /// has to log in again, and is told in time.
    mutating func warnOfEnd(now: Instant) {
        guard let due = endWarningDue, due <= now, let life = refreshLife else { return }
        if life.stage == .quiet, life.isWorthKeeping, now < life.endsAt {
            refreshLife?.stage = .tried
            wantToken(now: now)
            if fetch != nil || fetchDue != nil { return }
        }
        refreshLife?.stage = .announced
        if now < life.endsAt { act(.emit(.refreshTokenEnding(expiresIn: now.duration(to: life.endsAt)))) }
    }
}
