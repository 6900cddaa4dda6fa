/// State machine of one client's token: events in, actions out. Time and chance are passed in. `Heimdallr` performs the
/// actions, in order.
/// At most one fetch is under way, and one begins a second. A token is given out only by `use` and `wait`, and never after
/// its expiry or rejection. A new token is used after its record was saved, or saving failed. Each waiter is resumed
/// exactly once. Each failure is followed by another try.
struct TokenLifeCycle: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias WaiterID = UInt64
    typealias FetchID = UInt64

    struct Settings: Sendable {
        var needs: GrantNeeds
        var policy: TokenPolicy
        /// Longest time before expiry at which a refresh begins; at most half the life.
        var refreshBefore: Duration
        /// Time after which an unanswered fetch is given up.
        var patience: Duration
        /// Shortest time between the beginnings of two token requests.
        var minInterval = Duration.seconds(1)
        /// Whether a failed request is repeated without a token in use and without a waiting caller.
        var triesUnasked = true
        /// Whether the stored access token serves. It does not if it was asked for by other settings.
        var usesStoredToken = true
    }

    enum FetchKind: Sendable, Equatable {
        case grant
        case refresh(Secret)
    }

    enum Reading: Sendable {
        case start
        /// No reading has succeeded yet: a repaired store needs no restart.
        case repair
        /// Another process may have a login.
        case login
        /// Another process has changed the record.
        case change
    }

    enum Action: Sendable {
        /// Read the store, then call `read`.
        case read(Reading)
        /// Fetch, then call `began` and `answered` (and `saved`) with this id.
        case fetch(FetchID, FetchKind)
        /// The result no longer matters.
        case cancelFetch(FetchID)
        case resume(WaiterID, Result<AccessToken, HeimdallrError>)
        /// Save again what could not be saved, then call `resaved`.
        case resave(TokenRecord)
        /// The tokens now belong to this server and client; `nil`: to none.
        case enrol(Enrolment?)
        case emit(HeimdallrEvent.Kind)
    }

    enum Outcome: Sendable {
        case response(TokenResponse)
        case fault(TokenEndpointFault, retryAfter: Duration?)
        /// Another process on the same store has saved a later record.
        case adopted(TokenRecord)
        /// The configured refresh token was refused before; nothing was sent.
        case seedSpent
    }

    enum Stage: Sendable, Equatable {
        case new
        case loading
        case running
        case stopped
    }

    /// First outcome, good or bad.
    private enum FirstOutcome: Sendable {
        case open
        case known
        /// The need of a login was announced.
        case needsPerson
    }

    private(set) var settings: Settings
    var stage = Stage.new
    /// Whether a token is wanted before the first request.
    private(set) var isWarm = false
    /// Whether the record is being handed to another object. No token request begins.
    private(set) var isYielding = false
    private var firstOutcome = FirstOutcome.open

    private(set) var held: HeldToken?
    /// Resources that doubt the token.
    var suspicions = Suspicions()
    var grant = HeldGrant()
    var logins = Logins()
    var fetching: Fetching
    var setbacks = Setbacks()
    var saving = RecordSaving()
    var waiters = WaitingList()
    var seen = SeenSecrets()
    private var actions: [Action] = []

    init(settings: Settings) {
        self.settings = settings
        fetching = Fetching(minInterval: settings.minInterval, patience: settings.patience)
    }

    var token: AccessToken? { held?.token }
    var fetch: Fetch? { fetching.current }
    var refreshToken: Secret? { grant.refreshToken }
    var spentRefreshToken: Secret? { grant.spent }
    /// Secrets to hide when the server repeats them.
    var secretsToHide: [Secret] { seen.secrets + [refreshToken, spentRefreshToken, token?.value].compactMap { $0 } }
    var failure: Setbacks.Failure? { setbacks.failure }
    var rejectedUntil: Instant? { setbacks.rejections.until }
    var revision: UInt64 { saving.revision }
    var unsaved: TokenRecord? { saving.unsaved }
    /// Whether there was a first outcome, good or bad.
    var hasSettled: Bool { firstOutcome != .open }
    /// Whether the need of a login was announced, and no token has come since.
    var announcedNeed: Bool { firstOutcome == .needsPerson }

    mutating func act(_ action: Action) { actions.append(action) }

    /// Returns the actions since the last call, in order.
    mutating func takeActions() -> [Action] {
        guard !actions.isEmpty else { return [] }
        defer { actions = [] }
        return actions
    }

    // MARK: Using the token

    /// Returns a valid token that is not suspect at this resource. Begins the background refresh when it is due. Hot path.
    mutating func use(for resource: String? = nil, _ moment: Moment) -> AccessToken? {
        guard let held, stage == .running else { return nil }
        guard !held.token.isExpired(at: moment.now) else {
            tick(moment)
            return nil
        }
        self.held?.noteUse(at: moment.now)
        if moment.now >= held.refreshAt, !fetching.isUnderWay { tick(moment) }
        return suspicions.isSuspect(held.token.generation, at: resource) ? nil : held.token
    }

    /// Returns the token that `use` would return without an effect; `nil` where `use` has one.
    func tokenInUse(for resource: String? = nil, now: Instant) -> AccessToken? {
        guard stage == .running, let held, held.serves(at: now, refreshes: fetching.isIdle),
            !suspicions.isSuspect(held.token.generation, at: resource)
        else { return nil }
        return held.token
    }

    /// A resource refused this token. No effect on a replaced one.
    mutating func reject(generation: UInt64, _ moment: Moment) {
        guard let held, held.token.generation == generation else { return }
        setbacks.rejections.rejected(
            onFirstUse: held.isFirstUse(at: moment.now) && !held.isStored, least: settings.minInterval, moment)
        drop(.rejected)
        if rejectedUntil == nil { wantToken(now: moment.now) }
        tick(moment)
    }

    /// Drops the access token; the refresh token stays.
    mutating func invalidate(_ moment: Moment) {
        guard token != nil else { return }
        drop(.discarded)
        tick(moment)
    }

    /// Drops the token, unless it is bound to this certificate, and fetches another one.
    mutating func drop(notBoundTo certificate: UInt64, _ moment: Moment) {
        guard let token, token.certificate != certificate else { return }
        drop(.discarded)
        wantToken(now: moment.now)
        tick(moment)
    }

    /// Forgets everything and cancels the fetch. The caller removes the record.
    mutating func clear(_ moment: Moment) {
        cancelFetch()
        if held != nil { drop(.discarded) }
        grant.forget()
        seen.forget()
        logins.forget()
        saving.giveUp()
        // A save under way must not count later.
        _ = saving.nextRevision()
        setbacks.forget()
        setbacks.rejections = Rejections()
        suspicions = Suspicions()
        if stage == .new || stage == .loading { stage = .running }
        if !waiters.isEmpty { wantToken(now: moment.now) }
        tick(moment)
    }

    /// Takes the token out of use.
    mutating func drop(_ reason: HeimdallrEvent.LossReason) {
        held = nil
        act(.emit(.tokenLost(reason)))
    }

    // MARK: Beginning and ending

    /// Begins to keep a token, from the store or the server.
    mutating func start(_ moment: Moment) {
        isWarm = true
        load()
        if token == nil { wantToken(now: moment.now) }
        tick(moment)
    }

    /// Reads the store first of all.
    mutating func load() {
        guard stage == .new else { return }
        stage = .loading
        act(.read(.start))
    }

    /// Prepares the hand-over of the record, or the end of the process. A request under way goes on, and its record is saved.
    /// None begins.
    mutating func yield() {
        isYielding = true
        if fetch?.askedAt == nil { cancelFetch() }
        if !fetching.isUnderWay { resumeAll(.failure(Self.hasYielded)) }
    }

    static let hasYielded = HeimdallrError.tokenEndpointUnavailable(
        .store(TokenStoreError("the client's settings have changed, or the process ends", kind: .busy)),
        retryAfter: .seconds(1))

    /// The stored access token has other settings. Call before the start.
    mutating func ignoreStoredToken() { settings.usesStoredToken = false }

    mutating func stop() {
        guard stage != .stopped else { return }
        stage = .stopped
        cancelFetch()
        held = nil
        resumeAll(.failure(.stopped))
    }

    /// Cancels the fetch, under way or planned.
    mutating func cancelFetch() { if let fetch = fetching.end() { act(.cancelFetch(fetch.id)) } }

    /// Begins to use the token.
    mutating func publish(_ new: AccessToken, isStored: Bool = false, _ moment: Moment) {
        if held != nil { setbacks.rejections.endRow() }
        seen.note(new.value)
        seen.note(refreshToken)
        held = HeldToken(new, isStored: isStored, refreshBefore: settings.refreshBefore, moment)
        firstOutcome = .known
        // The waiting callers use it.
        if !waiters.isEmpty { held?.noteUse(at: moment.now) }
        resumeAll(.success(new))
    }

    // MARK: First outcome

    /// There is a first outcome, good or bad.
    mutating func settle() { if firstOutcome == .open { firstOutcome = .known } }

    /// Announces the need of a login, once until the next token.
    mutating func announceNeed() {
        if !announcedNeed { act(.emit(.needsAuthentication)) }
        firstOutcome = .needsPerson
    }

    /// A login has ended the need.
    mutating func endNeed() { firstOutcome = .known }

    /// A resource calls the token in use invalid.
    mutating func noteInvalid() { held?.noteInvalid() }
}
