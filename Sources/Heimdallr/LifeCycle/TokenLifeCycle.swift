/// The life of one client's token, decided purely: events in, actions out, time and chance passed in. It does no I/O
/// and knows no tasks; `Heimdallr` performs what it decides, in order.
///
/// Its promises: at most one fetch at a time and one begun a second; a token leaves only through `use` and `wait`, and
/// never expired or rejected; a token from an answer is in use only after its record was saved or saving failed;
/// each waiter is resumed exactly once; and whatever fails is tried again.
struct TokenLifeCycle: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias WaiterID = UInt64
    typealias FetchID = UInt64

    struct Settings: Sendable {
        var needs: GrantNeeds
        var policy: TokenPolicy
        /// At most this long before expiry; capped at half the life.
        var refreshBefore: Duration
        /// A fetch that has begun is given up after this.
        var patience: Duration
        /// Between the beginnings of two token requests, whatever happens.
        var minInterval = Duration.seconds(1)
    }

    enum FetchKind: Sendable, Equatable {
        case grant
        case refresh(Secret)
    }

    enum Action: Sendable {
        /// Read the store, then call `loaded`.
        case load
        /// Read the store once more, then call `looked`.
        case look
        /// Fetch, then call `began` and `answered` (and `saved`) with this id.
        case fetch(FetchID, FetchKind)
        /// The result no longer matters.
        case cancelFetch(FetchID)
        case resume(WaiterID, Result<AccessToken, HeimdallrError>)
        /// Save again what could not be saved, then call `resaved`.
        case resave(TokenRecord)
        case emit(HeimdallrEvent.Kind)
    }

    /// How a fetch ended.
    enum Outcome: Sendable {
        case response(TokenResponse)
        case fault(TokenEndpointFault, retryAfter: Duration?)
        /// Another process on the same store was faster.
        case adopted(TokenRecord)
        /// The refresh token handed in is the one that was refused already; nothing was sent.
        case seedSpent
    }

    enum Stage: Sendable, Equatable {
        case new
        case loading
        case running
        case stopped
    }

    struct Fetch: Sendable {
        var id: FetchID
        var kind: FetchKind
        /// When the request was sent; `nil` while it stands in line.
        var askedAt: Instant?
        /// The refresh token that was handed in and is spent with this fetch.
        var seed: Secret?
        /// What happens once the record is saved.
        var afterSave: AfterSave?

        enum AfterSave: Sendable {
            case publish(AccessToken, refreshed: Bool)
            case fail(TokenEndpointFault)
        }
    }

    struct Failure: Sendable {
        enum Kind: Sendable, Equatable {
            case unavailable(TokenEndpointFault)
            case refused(TokenEndpointFault)
            case needsAuthentication
        }

        var kind: Kind
        var at: Instant
        /// Until then it is remembered, and nothing is asked; then it is tried again.
        var retryAt: Instant
        /// The server asked for this, as far as it is taken seriously.
        var serverWants: Instant?
    }

    struct Waiter: Sendable {
        var deadline: Instant
        /// A token that is no newer than this one is of no use to them.
        var unwanted: UInt64?
    }

    let settings: Settings
    var stage = Stage.new
    /// Whether a token is wanted before anybody asks.
    var isWarm = false

    // The token.
    var token: AccessToken?
    var refreshAt: Instant?
    var firstUsedAt: Instant?
    /// The generation that was taken up from the store: its rejection proves nothing about new ones.
    var storedGeneration: UInt64?
    var refreshToken: Secret?
    /// `nil`: the server has not said how long the refresh token lives.
    var refreshLife: RefreshLife?
    /// Who signed in.
    var signIn: SignIn?
    /// A token that came from a login and is being saved.
    var pendingLogin: PendingLogin?
    var nextLoginID: LoginID = 1
    /// When the store was last asked whether somebody has logged in at another process.
    var lookedAt: Instant?
    /// The last refresh token that was refused.
    var spentRefreshToken: Secret?

    /// Which resources doubt it.
    var suspicions = Suspicions()
    /// The generation that a resource called invalid while only a person could bring another.
    var invalidGeneration: UInt64?

    // Fetching.
    var fetch: Fetch?
    var fetchDue: Instant?
    var nextFetchID: FetchID = 1
    var lastAskedAt: Instant?
    var failure: Failure?
    var failuresInARow = 0
    /// The last one of any kind, until a token request succeeds.
    var lastFault: (fault: TokenEndpointFault, at: Instant)?
    var lastSuccessAt: Instant?
    /// 400 or 401 to a refresh, but not what would say whose fault it is: when the first of this row came.
    var refusedSince: Instant?
    /// The refresh token is dead, most likely: every other attempt does without it.
    var isRefreshTokenDoubtful = false
    var lastAttemptWasGrant = false
    var rejectionsInARow = 0
    var rejectedUntil: Instant?
    var announcedNeed = false
    var hasSettled = false

    // The store.
    var revision: UInt64 = 0
    var unsaved: TokenRecord?
    var resaveDue: Instant?
    var isResaving = false
    var saveFailuresInARow = 0
    var storeFault: String?

    // The waiters.
    var waiters: [WaiterID: Waiter] = [:]
    /// No waiter's deadline is earlier.
    var earliestDeadline: Instant?

    private var actions: [Action] = []

    init(settings: Settings) {
        self.settings = settings
    }

    mutating func act(_ action: Action) { actions.append(action) }

    /// What there is to do since the last call, in order.
    mutating func takeActions() -> [Action] {
        guard !actions.isEmpty else { return [] }
        defer { actions = [] }
        return actions
    }

    // MARK: Using the token

    /// The hot path: the token, if there is one that may be used. Begins the background refresh when it is due.
    mutating func use(now: Instant, random: () -> Double) -> AccessToken? {
        guard let token, stage == .running else { return nil }
        guard !token.isExpired(at: now) else {
            tick(now: now, random: random)
            return nil
        }
        if firstUsedAt == nil { firstUsedAt = now }
        if let refreshAt, now >= refreshAt, fetch == nil { tick(now: now, random: random) }
        return token
    }

    /// The same without any effect, for the case that there is none to be had: nearly always.
    func tokenInUse(now: Instant) -> AccessToken? {
        guard let token, stage == .running, !token.isExpired(at: now), firstUsedAt != nil, let refreshAt,
            now < refreshAt || fetch != nil || fetchDue != nil
        else { return nil }
        return token
    }

    /// The token that was really sent was refused by the resource. No-op when it has been replaced.
    mutating func reject(generation: UInt64, now: Instant, random: () -> Double) {
        guard let token, token.generation == generation else { return }
        let isFirstUse = !token.wasAccepted && (firstUsedAt.map { now - $0 < .seconds(10) } ?? true)
        rejectionsInARow = isFirstUse && generation != storedGeneration ? rejectionsInARow + 1 : 0
        if rejectionsInARow >= 2 {
            let delay = Backoff.rejection.delay(attempt: rejectionsInARow - 1, random: random())
            rejectedUntil = now + max(settings.minInterval, delay)
        }
        drop(.rejected)
        if rejectedUntil == nil { wantToken(now: now) }
        tick(now: now, random: random)
    }

    /// The access token counts as expired; the refresh token stays.
    mutating func invalidate(now: Instant, random: () -> Double) {
        guard token != nil else { return }
        drop(.discarded)
        tick(now: now, random: random)
    }

    /// Forgets everything. What is under way is given up; the caller removes the record.
    mutating func clear(now: Instant, random: () -> Double) {
        if let fetch { act(.cancelFetch(fetch.id)) }
        fetch = nil
        fetchDue = nil
        if token != nil { drop(.discarded) }
        refreshToken = nil
        refreshLife = nil
        signIn = nil
        pendingLogin = nil
        unsaved = nil
        resaveDue = nil
        failure = nil
        lastFault = nil
        failuresInARow = 0
        refusedSince = nil
        isRefreshTokenDoubtful = false
        rejectionsInARow = 0
        rejectedUntil = nil
        suspicions = Suspicions()
        if stage == .new || stage == .loading { stage = .running }
        if !waiters.isEmpty { wantToken(now: now) }
        tick(now: now, random: random)
    }

    /// Takes the token out of use.
    mutating func drop(_ reason: HeimdallrEvent.LossReason) {
        token = nil
        refreshAt = nil
        firstUsedAt = nil
        act(.emit(.tokenLost(reason)))
    }

    // MARK: Beginning and ending

    /// Begins to keep a token: the store's, or a new one.
    mutating func start(now: Instant, random: () -> Double) {
        isWarm = true
        switch stage {
        case .new:
            stage = .loading
            act(.load)
        case .running where token == nil: wantToken(now: now)
        case .running, .loading, .stopped: break
        }
        tick(now: now, random: random)
    }

    mutating func stop() {
        guard stage != .stopped else { return }
        stage = .stopped
        if let fetch { act(.cancelFetch(fetch.id)) }
        fetch = nil
        fetchDue = nil
        token = nil
        resumeAll(.failure(.stopped))
    }

    /// The store was read. `fault`: it has a record that can't be read, or can't be reached.
    mutating func loaded(
        _ record: TokenRecord?, fault: String?, now: Instant, wallClock: Int64, random: () -> Double
    ) {
        guard stage == .loading else { return }
        stage = .running
        storeFault = fault
        if let record { takeUp(record, now: now, wallClock: wallClock, random: random) }
        if token == nil, isWarm || !waiters.isEmpty { wantToken(now: now) }
        tick(now: now, random: random)
    }

    /// The store could not be read, and nothing of our own has been saved since.
    var awaitsStore: Bool { stage == .running && revision == 0 && storeFault != nil }

    /// The store could be read at last. What was gone without it is over.
    mutating func reloaded(_ record: TokenRecord?, now: Instant, wallClock: Int64, random: () -> Double) {
        guard awaitsStore else { return }
        storeFault = nil
        guard let record, fetch == nil else { return }
        failure = nil
        failuresInARow = 0
        fetchDue = nil
        takeUp(record, now: now, wallClock: wallClock, random: random)
        if token == nil, isWarm || !waiters.isEmpty { wantToken(now: now) }
        tick(now: now, random: random)
    }

    /// The store's record becomes ours.
    mutating func takeUp(_ record: TokenRecord, now: Instant, wallClock: Int64, random: () -> Double) {
        revision = record.revision
        refreshToken = record.refreshToken
        refreshLife = record.refreshTokenLife.map { RefreshLife($0, now: now, wallClock: wallClock) }
        signIn = record.signIn
        guard let stored = record.accessToken(now: now, wallClock: wallClock) else { return }
        storedGeneration = stored.generation
        publish(stored, now: now, random: random)
        act(.emit(.tokenAcquired(expiresIn: now.duration(to: stored.expiresAt), stored: true)))
    }

    /// The token is in use from here on.
    mutating func publish(_ new: AccessToken, now: Instant, random: () -> Double) {
        if token != nil { rejectionsInARow = 0 }
        token = new
        firstUsedAt = nil
        announcedNeed = false
        hasSettled = true
        let life = now.duration(to: new.expiresAt)
        let early = min(settings.refreshBefore, life / 2)
        // Spread over the second half of the window, so that a fleet started at once does not ask at once.
        refreshAt = new.expiresAt - early * (0.5 + 0.5 * random())
        for id in waiters.keys {
            // Whoever waited uses it.
            firstUsedAt = now
            act(.resume(id, .success(new)))
        }
        waiters = [:]
        earliestDeadline = nil
    }
}
