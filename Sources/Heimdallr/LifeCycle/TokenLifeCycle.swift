/// State machine of one client's token: events in, actions out. Times and random numbers are passed in. `Heimdallr`
/// performs the actions in order.
/// At most one fetch is under way, and fetches begin at least a second apart. No token is given out after its expiry or
/// rejection. A new token is used only after its record was saved, or after saving failed. Each waiting caller is
/// resumed exactly once.
struct TokenLifeCycle: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias WaiterID = UInt64
    typealias FetchID = UInt64

    struct Settings: Sendable {
        var needs: GrantNeeds
        var policy: TokenPolicy
        /// Longest time before expiry at which a refresh begins. It is limited to half of the token's lifetime.
        var refreshBefore: Duration
        /// Time after which an unanswered fetch is given up.
        var patience: Duration
        /// Shortest time between the beginnings of two token requests.
        var minInterval = Duration.seconds(1)
        /// Whether a planned token request stays planned even if there is no current token and no waiting caller.
        var triesUnasked = true
        /// Whether the stored access token is used; false if it was requested with other settings.
        var usesStoredToken = true
        /// As in `OAuthAuthorizationGrant`.
        var namesIdentityAnew = false
        /// As in `HeimdallrConfiguration`.
        var refreshesWithScope = true
    }

    enum FetchKind: Sendable, Equatable {
        case grant
        case refresh(Secret)
    }

    enum Reading: Sendable {
        case start
        /// Repeated reading after a failed start, so that a repaired store needs no restart.
        case repair
        /// A search for a login at another process.
        case login
        /// Reading after another process changed the record.
        case change
    }

    enum Action: Sendable {
        /// Read the store, then call `read`.
        case read(Reading)
        /// Fetch, then call `prepares`, `sends` and `answered` (and `saved`) with this id.
        case fetch(FetchID, FetchKind)
        /// Cancel this fetch. Its result is no longer needed.
        case cancelFetch(FetchID)
        case resume(WaiterID, Result<AccessToken, HeimdallrError>)
        /// Save a record that is not saved yet, then call `resaved`.
        case resave(TokenRecord)
        /// Use this server and client for all further requests; `nil`: none is known.
        case enrol(Enrolment?)
        case emit(HeimdallrEvent.Kind)
    }

    enum Outcome: Sendable {
        case response(TokenResponse)
        case fault(TokenEndpointFault, retryAfter: Duration?)
        /// Another process on the same store has saved a later record.
        case adopted(TokenRecord)
        /// The configured refresh token was replaced or refused before; nothing was sent.
        case seedSpent
    }

    enum Stage: Sendable, Equatable {
        case new
        case loading
        case running
        case stopped
    }

    /// Whether there was a first outcome, and whether the need for a login was announced since the last token.
    private enum Settling: Sendable {
        case open
        case known
        /// The need for a login was announced.
        case needsPerson
    }

    private(set) var settings: Settings
    var stage = Stage.new
    /// Whether a token is wanted before the first request.
    private(set) var isWarm = false
    /// Whether the record goes to another object, or the process ends. No token request begins any more.
    private(set) var isYielding = false
    private var settling = Settling.open

    private(set) var held: HeldToken?
    /// Resources at which the token is suspect.
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
    /// Secrets to hide when an answer of the server repeats them.
    var secretsToHide: [Secret] { seen.secrets + [refreshToken, spentRefreshToken, token?.value].compactMap { $0 } }
    var failure: Setbacks.Failure? { setbacks.failure }
    var rejectedUntil: Instant? { setbacks.rejections.until }
    var revision: UInt64 { saving.revision }
    var unsaved: TokenRecord? { saving.unsaved }
    /// Whether there was a first outcome: a token or a failure.
    var hasSettled: Bool { settling != .open }
    /// Whether the need for a login was announced, and no token was received since.
    var announcedNeed: Bool { settling == .needsPerson }

    mutating func act(_ action: Action) { actions.append(action) }

    /// Returns the actions since the last call, in order.
    mutating func takeActions() -> [Action] {
        guard !actions.isEmpty else { return [] }
        defer { actions = [] }
        return actions
    }

    // MARK: Using the token

    /// Returns a valid token that is not suspect at this resource. Begins the background refresh when due. Hot path.
    mutating func use(for resource: String? = nil, _ moment: Moment) -> AccessToken? {
        guard let held, stage == .running else { return nil }
        guard !held.token.isExpired(at: moment.now) else {
            tick(moment)
            return nil
        }
        if let former = suspicions.former, former.serves(at: moment.now) { return former.token }
        self.held?.noteUse(at: moment.now)
        if moment.now >= held.refreshAt, !fetching.isUnderWay { tick(moment) }
        return suspicions.isSuspect(held.token.generation, at: resource) ? nil : held.token
    }

    /// Drops a token that a resource refused. Plans a fetch, unless several tokens were refused on their first use.
    /// Has no effect if the token was already replaced.
    mutating func reject(generation: UInt64, _ moment: Moment) {
        guard let held, held.token.generation == generation else { return }
        setbacks.rejections.rejected(
            onFirstUse: held.isFirstUse(at: moment.now) && !held.isStored, least: settings.minInterval, moment)
        drop(.rejected)
        if rejectedUntil == nil { wantToken(now: moment.now) }
        tick(moment)
    }

    /// Drops the access token, and keeps the refresh token.
    mutating func invalidate(_ moment: Moment) {
        guard token != nil else { return }
        drop(.discarded)
        tick(moment)
    }

    /// Drops a token that is not bound to this certificate, and fetches a new token.
    mutating func drop(notBoundTo certificate: UInt64, _ moment: Moment) {
        guard let token, token.certificate != certificate else { return }
        drop(.discarded)
        wantToken(now: moment.now)
        tick(moment)
    }

    /// Forgets all tokens and failures, and cancels the fetch. If callers wait for a token, plans a new fetch.
    /// `Heimdallr` removes the record from the store.
    mutating func clear(_ moment: Moment) {
        cancelFetch()
        if held != nil { drop(.discarded) }
        grant.forget()
        seen.forget()
        logins.forget()
        saving.giveUp()
        // With a new revision, the result of a save under way is ignored.
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
        suspicions.former = nil
        act(.emit(.tokenLost(reason)))
    }

    // MARK: Beginning and ending

    /// Begins to keep a valid token, from the store or else from the server.
    mutating func start(_ moment: Moment) {
        guard !isYielding, stage != .stopped else { return }
        isWarm = true
        load()
        if token == nil { wantToken(now: moment.now) }
        tick(moment)
    }

    /// Begins to read the store, unless that has already begun.
    mutating func load() {
        guard stage == .new else { return }
        stage = .loading
        act(.read(.start))
    }

    /// Prepares the hand-over of the record to another object, or the end of the process. A sent token request goes on,
    /// and its record is saved. Without one, waiting callers fail. No new request begins.
    mutating func yield() {
        isYielding = true
        if fetch?.startedAt == nil { cancelFetch() }
        if !fetching.isUnderWay { resumeAll(.failure(Self.hasYielded)) }
    }

    static let hasYielded = HeimdallrError.tokenEndpointUnavailable(
        .store(TokenStoreError("the client's settings have changed, or the process ends", kind: .busy)),
        retryAfter: .seconds(1))

    /// Ignores the stored access token, which was requested with other settings. Called before the start.
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

    /// Makes the token current, and resumes all waiting callers with it.
    /// - Parameter continues: whether the token belongs to the same sign-in as the current one, which then stays at hand.
    mutating func publish(
        _ new: AccessToken, isStored: Bool = false, continues: Bool = false, _ moment: Moment
    ) {
        if held != nil { setbacks.rejections.endRow() }
        seen.note(new.value)
        seen.note(refreshToken)
        suspicions.former = continues ? token.flatMap { suspicions.formerToken(of: $0, beside: new) } : nil
        held = HeldToken(new, isStored: isStored, refreshBefore: settings.refreshBefore, moment)
        settling = .known
        logins.forgetFailure()
        // The waiting callers count as its first use.
        if !waiters.isEmpty { held?.noteUse(at: moment.now) }
        resumeAll(.success(new))
    }

    // MARK: First outcome

    /// Notes that there is a first outcome: a token or a failure.
    mutating func settle() { if settling == .open { settling = .known } }

    /// Announces the need for a login, unless it was announced since the last token.
    mutating func announceNeed() {
        if !announcedNeed { act(.emit(.needsAuthentication)) }
        settling = .needsPerson
    }

    /// Notes that a login is no longer needed.
    mutating func endNeed() { settling = .known }

    /// Notes that a resource called the current token invalid.
    mutating func noteInvalid() {
        let isNews = !announcedNeed
        held?.noteInvalid(announcesNeed: isNews)
    }

    /// Lets the former token serve. See `HeldToken.rest`.
    mutating func rest() { held?.rest() }
}
