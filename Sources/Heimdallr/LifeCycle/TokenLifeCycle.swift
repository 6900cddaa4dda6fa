/// The life of one client's token, decided purely: events in, actions out, time and chance passed in. It does no I/O
/// and knows no tasks; `Heimdallr` performs the actions, in order.
///
/// Its promises: at most one fetch at a time, and one begun a second. A token leaves only through `use` and `wait`, and
/// never after its expiry or rejection. A token from an answer is used only after its record was saved, or saving
/// failed. Each waiter is resumed exactly once. Each failure is followed by another try.
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
        /// Whether a failed request is repeated without a token in use and without a waiting caller.
        var triesUnasked = true
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

    let settings: Settings
    var stage = Stage.new
    /// Whether a token is wanted before the first request.
    var isWarm = false
    /// Whether the stored access token was asked for by other settings; the stored refresh token serves.
    var ignoresStoredToken = false
    /// Another object has this client's record from now on, or in a moment. No token request begins.
    private(set) var isYielding = false
    /// Record that the object before this one could not save.
    private var inherited: TokenRecord?

    /// The token in use.
    var held: HeldToken?
    /// The generation that was taken up from the store: its rejection proves nothing about new ones.
    var storedGeneration: UInt64?
    /// The generation that a resource called invalid while only a person could bring another.
    var invalidGeneration: UInt64?
    /// Which resources doubt the token.
    var suspicions = Suspicions()
    var rejections = Rejections()

    var grant = HeldGrant()
    var logins = Logins()
    var fetching: Fetching
    var setbacks = Setbacks()
    var saving = RecordSaving()
    var waiters = WaitingList()
    var echoes = Echoes()

    /// It was said that nothing but a login helps.
    var announcedNeed = false
    /// There has been a first outcome, good or bad.
    var hasSettled = false

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
    var secretsToHide: [Secret] { echoes.secrets + [refreshToken, spentRefreshToken, token?.value].compactMap { $0 } }
    var failure: Setbacks.Failure? { setbacks.failure }
    var rejectedUntil: Instant? { rejections.until }
    var revision: UInt64 { saving.revision }
    var unsaved: TokenRecord? { saving.unsaved ?? inherited }
    var storeFault: String? { saving.fault }

    mutating func act(_ action: Action) { actions.append(action) }

    /// Returns the actions since the last call, in order.
    mutating func takeActions() -> [Action] {
        guard !actions.isEmpty else { return [] }
        defer { actions = [] }
        return actions
    }

    // MARK: Using the token

    /// The hot path: the token, if there is one that may be used. Begins the background refresh when it is due.
    mutating func use(_ moment: Moment) -> AccessToken? {
        guard let held, stage == .running else { return nil }
        guard !held.token.isExpired(at: moment.now) else {
            tick(moment)
            return nil
        }
        self.held?.noteUse(at: moment.now)
        if moment.now >= held.refreshAt, !fetching.isUnderWay { tick(moment) }
        return held.token
    }

    /// The same without any effect, for the usual case that none is needed.
    func tokenInUse(now: Instant) -> AccessToken? {
        guard stage == .running, held?.serves(at: now, refreshes: fetching.isIdle) == true else { return nil }
        return held?.token
    }

    /// The token that was really sent was refused by the resource. No-op when it has been replaced.
    mutating func reject(generation: UInt64, _ moment: Moment) {
        guard let held, held.token.generation == generation else { return }
        rejections.rejected(
            onFirstUse: held.isFirstUse(at: moment.now) && generation != storedGeneration, least: settings.minInterval,
            moment)
        drop(.rejected)
        if rejectedUntil == nil { wantToken(now: moment.now) }
        tick(moment)
    }

    /// The access token counts as expired; the refresh token stays.
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

    /// Forgets everything. What is under way is given up; the caller removes the record.
    mutating func clear(_ moment: Moment) {
        cancelFetch()
        if held != nil { drop(.discarded) }
        grant.forget()
        echoes.forget()
        logins.forget()
        saving.giveUp()
        // A save under way must not count later.
        _ = saving.nextRevision()
        setbacks.forget()
        rejections = Rejections()
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

    /// Begins to keep a token: the store's, or a new one.
    mutating func start(_ moment: Moment) {
        isWarm = true
        switch stage {
        case .new:
            stage = .loading
            act(.load)
        case .running where token == nil: wantToken(now: moment.now)
        case .running, .loading, .stopped: break
        }
        tick(moment)
    }

    /// The record is about to be another object's, or the process ends. A request that is under way goes on, and its record
    /// is saved; none begins.
    mutating func yield() {
        isYielding = true
        if fetch?.askedAt == nil { cancelFetch() }
        if !fetching.isUnderWay { resumeAll(.failure(Self.hasYielded)) }
    }

    static let hasYielded = HeimdallrError.tokenEndpointUnavailable(
        .store(TokenStoreError("the client's settings have changed, or the process ends", kind: .busy)),
        retryAfter: .seconds(1))

    /// To be called before `start`. What an object before this one could not save becomes this one's to save.
    mutating func inherit(_ record: TokenRecord?) { inherited = record }

    mutating func stop() {
        guard stage != .stopped else { return }
        stage = .stopped
        cancelFetch()
        held = nil
        resumeAll(.failure(.stopped))
    }

    /// Cancels the fetch, under way or planned.
    mutating func cancelFetch() {
        if let fetch = fetching.end() { act(.cancelFetch(fetch.id)) }
    }

    /// The store was read. `fault`: it has a record that can't be read, or can't be reached.
    mutating func loaded(_ record: TokenRecord?, fault: TokenStoreError?, _ moment: Moment) {
        guard stage == .loading else { return }
        stage = .running
        saving.noteReading(fault: fault)
        if let record { takeUp(record, moment) }
        if let inherited, inherited.revision > revision {
            takeUp(inherited, moment)
            saving.inherit(inherited, now: moment.now)
        }
        inherited = nil
        if token == nil, isWarm || !waiters.isEmpty { wantToken(now: moment.now) }
        tick(moment)
    }

    /// Whether the store was unreadable from the start, and no record of ours has been saved since.
    var awaitsStore: Bool { stage == .running && saving.revision == 0 && saving.fault != nil }

    /// The store could be read at last. What was gone without it is over.
    mutating func reloaded(_ record: TokenRecord?, _ moment: Moment) {
        guard awaitsStore else { return }
        saving.noteReading(fault: nil)
        guard let record, !fetching.isUnderWay else { return }
        setbacks.forgetFailure()
        fetching.unplan()
        takeUp(record, moment)
        if token == nil, isWarm || !waiters.isEmpty { wantToken(now: moment.now) }
        tick(moment)
    }

    /// The store's record becomes ours.
    mutating func takeUp(_ record: TokenRecord, _ moment: Moment) {
        saving.takeUp(record.revision)
        grant.takeUp(record, moment)
        guard let stored = record.accessToken(at: moment) else { return }
        // A later revision with the same token: no newer one for a resource that refused it.
        if let token, token.value == stored.value, !token.isExpired(at: moment.now) { return }
        storedGeneration = stored.generation
        publish(stored, moment)
        act(.emit(.tokenAcquired(expiresIn: moment.now.duration(to: stored.expiresAt), stored: true)))
    }

    /// The token is in use from here on.
    mutating func publish(_ new: AccessToken, _ moment: Moment) {
        if held != nil { rejections.endRow() }
        echoes.note(new.value)
        echoes.note(refreshToken)
        held = HeldToken(new, refreshBefore: settings.refreshBefore, moment)
        announcedNeed = false
        hasSettled = true
        // Those who waited use it.
        if !waiters.isEmpty { held?.noteUse(at: moment.now) }
        resumeAll(.success(new))
    }
}
