import Synchronization

/// Keeps one valid access token for one OAuth client, and puts it on requests.
///
/// All members can be called on any thread. `currentToken()`, `refused(_:by:saysInvalid:isReplay:)` and `reject(_:)`
/// never wait, so an event loop may call them. Token requests (RFC 6749) run in separate tasks, one at a time. A caller
/// that stops waiting does not end its token request. Nothing is sent before `start()` or the first wait. End the
/// client with `shutdown()`.
public final class Heimdallr: Sendable {
    /// The client's name, which its events and its metrics carry. Not the `client_id`.
    public let name: String
    /// The name of its record in the store.
    package let recordName: String
    let authenticator: any ResourceRequestAuthenticator
    let store: any OAuthAccessTokenStore
    let exchange: TokenExchange
    let issuerKeys: IssuerKeys
    /// One at a time works on the store's record.
    let gate: TokenRequestLimiter
    let clock: HeimdallrClock
    /// See `HeimdallrConfiguration`.
    let certificate: (@Sendable () -> UInt64)?
    let onTokenRequest: (@Sendable (TokenRequestReport) -> Void)?
    /// `nil`: the client has its own token.
    let callers: CallerClients?
    private let broadcast = EventBroadcast()
    private let state: Mutex<State>

    private struct State {
        var lifeCycle: TokenLifeCycle
        var nextWaiter: UInt64 = 0
        var continuations: [UInt64: CheckedContinuation<Result<AccessToken, HeimdallrError>, Never>] = [:]
        var fetches: [UInt64: Task<Void, Never>] = [:]
        /// Logins that have sent what can be used once.
        var logins = 0
        var alarm: (at: ContinuousClock.Instant, task: Task<Void, Never>)?
        /// Hears what other processes do with the record.
        var storeWatch: Task<Void, Never>?
    }

    private typealias Resumption = (
        continuation: CheckedContinuation<Result<AccessToken, HeimdallrError>, Never>,
        result: Result<AccessToken, HeimdallrError>
    )

    /// Sends nothing yet.
    /// - Parameters:
    ///   - name: identifies this client in events, in metrics and, as part of `RecordName`, in the store.
    ///   - configuration: endpoints, scope and times; checked here.
    ///   - credentials: authenticate the client at the token endpoint.
    ///   - grant: gets the first token.
    ///   - httpClient: sends requests to the authorization server, for example `CurlHTTPClient` of `HeimdallrCurl`.
    ///   - store: keeps tokens between runs of the program. The default keeps them in memory only.
    ///   - parser: reads the token endpoint's answers.
    ///   - authenticator: puts the token on a request.
    ///   - limiter: bounds the requests under way; shared by all clients of a process.
    ///   - clock: time and chance, replaced in tests.
    ///   - onTokenRequest: called after each token request, on any thread; must not block.
    /// - Throws: `HeimdallrConfigurationError` when the configuration can't work.
    public init(
        name: String = "default", configuration: HeimdallrConfiguration, credentials: any OAuthClientCredentials,
        grant: any OAuthAuthorizationGrant = ClientCredentialsGrant(), httpClient: any HeimdallrHTTPClient,
        store: any OAuthAccessTokenStore = OAuthAccessTokenMemoryStore(),
        parser: any OAuthAccessTokenParser = OAuthAccessTokenDefaultParser(),
        authenticator: any ResourceRequestAuthenticator = ResourceRequestAuthenticatorHTTPHeader(),
        limiter: TokenRequestLimiter = .shared, clock: HeimdallrClock = .system,
        onTokenRequest: (@Sendable (TokenRequestReport) -> Void)? = nil
    ) throws(HeimdallrConfigurationError) {
        try configuration.validate(grant: grant)
        self.name = name
        recordName =
            RecordName(client: name, configuration: configuration, credentials: credentials, grant: grant).description
        self.authenticator = authenticator
        self.store = store
        self.clock = clock
        gate = TokenRequestLimiter(.one, clock: clock)
        certificate = configuration.certificate
        self.onTokenRequest = onTokenRequest
        let httpClient = LimitedHTTPClient(httpClient, limiter)
        let directory = EndpointDirectory(configuration: configuration, httpClient: httpClient, clock: clock)
        let binding: DPoPBinding?
        if let setting = configuration.dpop {
            binding = DPoPBinding(setting, wallClock: clock.wallClock)
        } else {
            binding = nil
        }
        exchange = TokenExchange(
            configuration: configuration, credentials: credentials, grant: grant,
            parser: (grant as? any OwnRequestGrant)?.parser ?? parser,
            httpClient: httpClient, directory: directory, binding: binding)
        issuerKeys = IssuerKeys(directory: directory, clock: clock, timeout: configuration.timeout)
        let policy = TokenPolicy(
            defaultExpiresIn: configuration.defaultExpiresIn, defaultTokenType: configuration.defaultTokenType,
            treatAsBearer: configuration.treatAsBearer, requestedScope: configuration.scope)
        let settings = TokenLifeCycle.Settings(
            needs: grant.needs, policy: policy, refreshBefore: configuration.refreshBefore,
            patience: configuration.timeout + .seconds(5))
        if let grant = grant as? TokenExchangeGrant, grant.isOfCallers {
            var caller = settings
            caller.refreshBefore = .zero
            caller.triesUnasked = false
            callers = CallerClients(
                CallerClients.Blueprint(
                    name: name, authenticator: authenticator, exchange: exchange, issuerKeys: issuerKeys,
                    clock: clock, settings: caller, onTokenRequest: onTokenRequest), grant: grant)
        } else {
            callers = nil
        }
        state = Mutex(State(lifeCycle: TokenLifeCycle(settings: settings)))
    }

    /// For one caller: nothing of it is kept but in memory.
    init(
        of blueprint: CallerClients.Blueprint, _ grant: TokenExchangeGrant, _ parser: any OAuthAccessTokenParser,
        asked: @escaping @Sendable (TokenRequestReport) -> Void
    ) {
        name = blueprint.name
        // Each caller has a separate store.
        recordName = name
        authenticator = blueprint.authenticator
        store = OAuthAccessTokenMemoryStore()
        var exchange = blueprint.exchange
        exchange.grant = grant
        exchange.parser = parser
        self.exchange = exchange
        issuerKeys = blueprint.issuerKeys
        clock = blueprint.clock
        gate = TokenRequestLimiter(.one, clock: clock)
        certificate = blueprint.exchange.configuration.certificate
        onTokenRequest = { report in
            asked(report)
            blueprint.onTokenRequest?(report)
        }
        callers = nil
        state = Mutex(State(lifeCycle: TokenLifeCycle(settings: blueprint.settings)))
    }

    deinit {
        state.withLock {
            $0.alarm?.task.cancel()
            $0.storeWatch?.cancel()
        }
        broadcast.finish()
    }

    // MARK: The token

    /// The token to use now; `nil` when there is none, or it has expired or was rejected. Never waits. Calling it keeps
    /// the token alive: when a refresh is due, one starts in the background while this token still serves.
    public func currentToken() -> AccessToken? {
        if certificate != nil { checkCertificate() }
        let now = clock.now()
        if let token = state.withLock({ $0.lifeCycle.tokenInUse(now: now) }) { return token }
        return apply { $0.use($1) }
    }

    /// The token to use now for `resource`; `nil` when there is none, it has expired, or this resource refused it and a
    /// new one is on its way. Never waits.
    /// - Parameter resource: a name of the caller's choice, the same text each time, out of a small set: the origin,
    ///   say.
    public func currentToken(for resource: String) -> AccessToken? {
        if certificate != nil { checkCertificate() }
        let now = clock.now()
        if let token = state.withLock({ $0.lifeCycle.tokenInUse(for: resource, now: now) }) { return token }
        return apply { $0.use(for: resource, $1) }
    }

    /// The token to use now. Waits for one where there is none, until `deadline` at the latest; the token request then
    /// goes on without this caller.
    /// - Throws: `HeimdallrError`, which says why there is none and when to ask again.
    public func accessToken(before deadline: ContinuousClock.Instant) async throws(HeimdallrError) -> AccessToken {
        if let token = currentToken() { return token }
        return try await waiting { life, id, moment in
            life.wait(id, until: deadline, moment)
        }
    }

    /// Waits for what `begin` says, with exactly one outcome.
    func waiting(_ begin: (inout TokenLifeCycle, UInt64, Moment) -> Void) async throws(HeimdallrError) -> AccessToken {
        if exchangesCallers { throw Self.callerWanted }
        checkCertificate()
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                state.withLock { $0.continuations[id] = continuation }
                apply { begin(&$0, id, $1) }
                // A cancellation before the waiter was added had no effect.
                if Task.isCancelled { apply { life, _ in life.leave(id) } }
            }
        } onCancel: {
            apply { life, _ in life.leave(id) }
        }
        return try result.get()
    }

    /// Whether a refresh token was sent and its result is not saved yet.
    var isSpending: Bool {
        state.withLock { state in
            if state.logins > 0 { return true }
            guard !state.fetches.isEmpty else { return false }
            // The record of a refusal is saved when the life cycle has done with the fetch.
            guard let fetch = state.lifeCycle.fetch else { return true }
            return fetch.isSpending
        }
    }

    /// A token request of any kind is under way.
    var isAsking: Bool { isSpending || state.withLock { $0.lifeCycle.fetch != nil } }

    /// While one is being exchanged, `drain(within:)` waits.
    func countLogin(_ change: Int) { state.withLock { $0.logins += change } }

    // MARK: Beginning and ending

    /// Gets a token before the first request: the stored one if it is still good, else a new one. Returns at once. Has
    /// no effect when callers' own tokens are exchanged.
    public func start() {
        guard !exchangesCallers else { return }
        apply { $0.start($1) }
    }

    /// Before the store is read: its access token was asked for by other settings and is not used. Its refresh token is.
    package func ignoreStoredToken() { apply { life, _ in life.ignoresStoredToken = true } }

    /// Ends the client: waiting callers get `HeimdallrError.stopped`, and event streams end. Returns at once. Call
    /// `drain(within:)` first, so that no refresh token is lost.
    public func shutdown() {
        callers?.shutdown()
        apply { life, _ in life.stop() }
        endStoreWatch()
        broadcast.finish()
    }

    func endStoreWatch() { state.withLock { $0.storeWatch?.cancel() } }

    // MARK: Watching

    /// Events of the client from now on. Each call makes a new stream, which ends at `shutdown()`. A reader more than
    /// 256 events behind loses the oldest ones.
    public func events() -> AsyncStream<HeimdallrEvent> { broadcast.stream() }

    // MARK: Performing what the life cycle decides

    /// A look, without effect.
    func look<Answer: Sendable>(_ body: (TokenLifeCycle) -> Answer) -> Answer {
        state.withLock { body($0.lifeCycle) }
    }

    /// Gives an event to the life cycle and performs the resulting actions. Events leave in order; continuations resume
    /// outside the lock.
    @discardableResult
    func apply<Answer: Sendable>(_ body: (inout TokenLifeCycle, Moment) -> Answer) -> Answer {
        let moment = Moment(clock)
        let (answer, resumptions): (Answer, [Resumption]) = state.withLock { state in
            let answer = body(&state.lifeCycle, moment)
            var resumptions: [Resumption] = []
            for action in state.lifeCycle.takeActions() {
                perform(action, &state, &resumptions)
            }
            setAlarm(&state)
            return (answer, resumptions)
        }
        for resumption in resumptions { resumption.continuation.resume(returning: resumption.result) }
        return answer
    }

    private func perform(_ action: TokenLifeCycle.Action, _ state: inout State, _ resumptions: inout [Resumption]) {
        switch action {
        case .load:
            Task.detached { [self] in await load() }
        case .look:
            Task.detached { [self] in await lookAgain() }
        case .fetch(let id, let kind):
            state.fetches[id] = Task.detached { [self] in await fetch(id, kind) }
        case .cancelFetch(let id):
            state.fetches.removeValue(forKey: id)?.cancel()
        case .resume(let id, let result):
            if let continuation = state.continuations.removeValue(forKey: id) {
                resumptions.append((continuation, result))
            }
        case .resave(let record):
            Task.detached { [self] in await resave(record) }
        case .emit(let kind):
            broadcast.send(HeimdallrEvent(client: name, kind: kind))
        }
    }

    /// One alarm at a time, at the earliest moment the life cycle has something to do. It does not keep `self` alive.
    private func setAlarm(_ state: inout State) {
        guard let wake = state.lifeCycle.nextWake else {
            state.alarm?.task.cancel()
            state.alarm = nil
            return
        }
        if let alarm = state.alarm, alarm.at <= wake { return }
        state.alarm?.task.cancel()
        let task = Task.detached { [weak self, clock] in
            do { try await clock.sleep(wake) } catch { return }
            self?.ring(wake)
        }
        state.alarm = (wake, task)
    }

    private func ring(_ instant: ContinuousClock.Instant) {
        state.withLock { state in
            if state.alarm?.at == instant { state.alarm = nil }
        }
        apply { $0.tick($1) }
    }

    /// A fetch has ended, in whatever way.
    func ended(_ id: UInt64) { state.withLock { $0.fetches[id] = nil } }

    /// Whether other processes use the store.
    var isShared: Bool { state.withLock { $0.storeWatch != nil } }

    /// The one that hears what other processes do with the record.
    func keep(storeWatch: Task<Void, Never>) {
        state.withLock { state in
            state.storeWatch?.cancel()
            state.storeWatch = storeWatch
        }
    }
}
