import Synchronization

/// Keeps a valid access token for one OAuth client, and puts the token on requests.
///
/// Safe on any thread. `currentToken()`, `refused(_:by:saysInvalid:isReplay:)` and `reject(_:)` never wait, so an event
/// loop may call them. Token requests (RFC 6749) run in separate tasks, one at a time, and outlive the wait of a
/// caller. Nothing is sent before `start()` or the first wait. `shutdown()` ends the client.
public final class Heimdallr: Sendable {
    /// The client's name in events and metrics. Not the `client_id`.
    public let name: String
    /// The name of the client's record in the store.
    package let recordName: String
    let authenticator: any ResourceRequestAuthenticator
    let store: any OAuthAccessTokenStore
    let requests: TokenRequests
    let issuerKeys: IssuerKeys
    /// Admits one task at a time to the store's record.
    let turns: TokenRequestLimiter
    let clock: HeimdallrClock
    /// See `HeimdallrConfiguration`.
    let certificate: (@Sendable () -> UInt64)?
    /// Returns the client whose sign-in this client uses.
    let subject: (@Sendable () -> Heimdallr?)?
    let onTokenRequest: (@Sendable (TokenRequestReport) -> Void)?
    /// Clients of the callers, if callers' tokens are exchanged; `nil`: the client has its own token.
    let callers: CallerClients?
    private let broadcast = EventBroadcast()
    private let state: Mutex<State>
    /// Follows `state`, under its lock.
    private let inUse = Mutex<TokenInUse?>(nil)

    private struct State {
        var lifeCycle: TokenLifeCycle
        var nextWaiter: UInt64 = 0
        var continuations: [UInt64: CheckedContinuation<Result<AccessToken, HeimdallrError>, Never>] = [:]
        var fetches: [UInt64: Task<Void, Never>] = [:]
        /// Number of logins under the store's lease. They may have sent a one-time credential.
        var logins = 0
        var alarm: (at: ContinuousClock.Instant, task: Task<Void, Never>)?
        /// Task that listens for changes of the record by other processes.
        var storeWatch: Task<Void, Never>?
        /// By the names of the clients that use this client's sign-in: called after its person has changed.
        var followers: [String: @Sendable () -> Void] = [:]
    }

    private typealias Resumption = (
        continuation: CheckedContinuation<Result<AccessToken, HeimdallrError>, Never>,
        result: Result<AccessToken, HeimdallrError>
    )

    /// Makes a client. Sends nothing yet.
    /// - Parameters:
    ///   - name: identifies this client in events, in metrics and, as part of `RecordName`, in the store.
    ///   - configuration: endpoints, scope and times. It is checked here.
    ///   - credentials: authenticate the client at the token endpoint.
    ///   - grant: gets the first token.
    ///   - httpClient: sends requests to the authorization server, for example `CurlHTTPClient` of `HeimdallrCurl`.
    ///   - store: keeps tokens between runs of the program. The default keeps them in memory only.
    ///   - parser: reads the token endpoint's answers.
    ///   - authenticator: puts the token on a request.
    ///   - limiter: limits the concurrent requests. All clients of a process share it.
    ///   - clock: time and random numbers, replaced in tests.
    ///   - onTokenRequest: called after each token request, on any thread. Must not block.
    /// - Throws: `HeimdallrConfigurationError` if the configuration can't work.
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
        turns = TokenRequestLimiter(.one, clock: clock)
        certificate = configuration.certificate
        subject = (grant as? IdentityAssertionGrant)?.provider
        self.onTokenRequest = onTokenRequest
        requests = TokenRequests(
            configuration, credentials, grant, parser, LimitedHTTPClient(httpClient, limiter), clock)
        issuerKeys = IssuerKeys(directory: requests.directory)
        let policy = TokenPolicy(
            defaultExpiresIn: configuration.defaultExpiresIn, defaultTokenType: configuration.defaultTokenType,
            treatAsBearer: configuration.treatAsBearer, requestedScope: requests.requestedScope,
            lifetime: configuration.tokenLifetime, needsPerson: grant.needs == .person)
        var settings = TokenLifeCycle.Settings(
            needs: grant.needs, policy: policy, refreshBefore: configuration.refreshBefore,
            patience: configuration.timeout + .seconds(5))
        settings.namesIdentityAnew = grant.namesIdentityAnew
        settings.refreshesWithScope = configuration.refreshesWithScope
        if let grant = grant as? TokenExchangeGrant, grant.isOfCallers {
            var caller = settings
            caller.refreshBefore = .zero
            caller.triesUnasked = false
            callers = CallerClients(
                CallerClients.Blueprint(
                    name: name, authenticator: authenticator, requests: requests, issuerKeys: issuerKeys,
                    clock: clock, settings: caller, onTokenRequest: onTokenRequest), grant: grant)
        } else {
            callers = nil
        }
        state = Mutex(State(lifeCycle: TokenLifeCycle(settings: settings)))
    }

    /// Makes the client of one caller. Its tokens are in memory only.
    init(
        of blueprint: CallerClients.Blueprint, _ grant: TokenExchangeGrant, _ parser: any OAuthAccessTokenParser,
        asked: @escaping @Sendable (TokenRequestReport) -> Void
    ) {
        name = blueprint.name
        // Each caller has a separate store.
        recordName = name
        authenticator = blueprint.authenticator
        store = OAuthAccessTokenMemoryStore()
        var requests = blueprint.requests
        requests.grant = grant
        requests.parser = parser
        self.requests = requests
        issuerKeys = blueprint.issuerKeys
        clock = blueprint.clock
        turns = TokenRequestLimiter(.one, clock: clock)
        certificate = blueprint.requests.configuration.certificate
        subject = nil
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

    /// Whether `checkBinding()` has anything to check.
    private var isBound: Bool { certificate != nil || subject != nil }

    /// Returns a valid token, if there is one. Never waits. Starts a background refresh when one is due.
    /// - Parameter resource: a name from a small set, for example the origin; `nil`: any resource. After this resource
    ///   has refused a token, the result is `nil` until a new token was fetched.
    public func currentToken(for resource: String? = nil) -> AccessToken? {
        if isBound { checkBinding() }
        if let token = inUse.withLock({ $0 })?.token(at: clock.now()) { return token }
        return apply { $0.use(for: resource, $1) }
    }

    /// Returns a valid token. Waits until `deadline`; a token request under way then goes on.
    /// - Throws: `HeimdallrError` with the reason and the time of the next attempt.
    public func accessToken(before deadline: ContinuousClock.Instant) async throws(HeimdallrError) -> AccessToken {
        if let token = currentToken() { return token }
        return try await waiting { life, id, moment in life.wait(id, until: deadline, moment) }
    }

    /// Waits for a token or an error. `begin` adds a waiter with the given number to the life cycle.
    func waiting(_ begin: (inout TokenLifeCycle, UInt64, Moment) -> Void) async throws(HeimdallrError) -> AccessToken {
        if exchangesCallers { throw Self.callerWanted }
        checkBinding()
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

    /// Whether a one-time credential may have been sent whose new tokens are not saved yet.
    var isSpending: Bool {
        state.withLock { state in
            if state.logins > 0 { return true }
            guard !state.fetches.isEmpty else { return false }
            // After a refusal, the life cycle ends the fetch first, and the record is saved after that.
            guard let fetch = state.lifeCycle.fetch else { return true }
            return fetch.isSpending
        }
    }

    /// Counts logins that exchange a credential. `drain(within:)` waits for them.
    func countLogin(_ change: Int) { state.withLock { $0.logins += change } }

    // MARK: Beginning and ending

    /// Ends the client: waiting callers get `HeimdallrError.stopped`, and event streams end. Returns at once. Call
    /// `drain(within:)` first, so that no refresh token is lost.
    public func shutdown() {
        callers?.shutdown()
        apply { life, _ in life.stop() }
        watch(nil)
        broadcast.finish()
    }

    // MARK: Watching

    /// Returns a new stream of events from now until `shutdown()`. A stream keeps the newest 256 unread events.
    public func events() -> AsyncStream<HeimdallrEvent> { broadcast.stream() }

    /// Calls `observe` for each event from now until `shutdown()`, one after the other. Needs no task while there is none.
    @discardableResult
    package func observe(_ observe: @escaping @Sendable (HeimdallrEvent) async -> Void) -> EventObserver {
        let observer = EventObserver(observe)
        broadcast.add(observer)
        return observer
    }

    // MARK: Performing the life cycle's actions

    func look<Answer: Sendable>(_ body: (TokenLifeCycle) -> Answer) -> Answer { state.withLock { body($0.lifeCycle) } }

    /// Passes an event to the life cycle and performs its actions in order. Continuations are resumed outside the lock.
    @discardableResult
    func apply<Answer: Sendable>(_ body: (inout TokenLifeCycle, Moment) -> Answer) -> Answer {
        let moment = Moment(clock)
        let (answer, resumptions, followers): (Answer, [Resumption], [@Sendable () -> Void]) = state.withLock { state in
            let identity = state.lifeCycle.identity
            let answer = body(&state.lifeCycle, moment)
            inUse.withLock { $0 = state.lifeCycle.inUse }
            var resumptions: [Resumption] = []
            for action in state.lifeCycle.takeActions() { perform(action, &state, &resumptions) }
            setAlarm(&state)
            return (answer, resumptions, state.lifeCycle.identity == identity ? [] : Array(state.followers.values))
        }
        for resumption in resumptions { resumption.continuation.resume(returning: resumption.result) }
        for follower in followers { follower() }
        return answer
    }

    private func perform(_ action: TokenLifeCycle.Action, _ state: inout State, _ resumptions: inout [Resumption]) {
        switch action {
        case .read(let reading): Task.detached { [self] in await read(reading) }
        case .fetch(let id, let kind): state.fetches[id] = Task.detached { [self] in await fetch(id, kind) }
        case .cancelFetch(let id): state.fetches.removeValue(forKey: id)?.cancel()
        case .resume(let id, let result):
            if let continuation = state.continuations.removeValue(forKey: id) {
                resumptions.append((continuation, result))
            }
        case .enrol(let enrolment):
            // Under the lock, so that no token is used with the server or client of another token.
            requests.enroller?.use(enrolment)
        case .resave(let record): Task.detached { [self] in await resave(record) }
        case .emit(let kind): broadcast.send(HeimdallrEvent(client: name, kind: kind))
        }
    }

    /// Sets the alarm to the time of the next action. Without a next action, cancels it. An earlier alarm stays.
    /// The alarm's task does not keep `self` alive.
    private func setAlarm(_ state: inout State) {
        let wake = state.lifeCycle.nextWake
        if let alarm = state.alarm, let wake, alarm.at <= wake { return }
        state.alarm?.task.cancel()
        state.alarm = wake.map { wake in
            let task = Task.detached { [weak self, clock] in
                do { try await clock.sleep(wake) } catch { return }
                self?.ring(wake)
            }
            return (wake, task)
        }
    }

    private func ring(_ instant: ContinuousClock.Instant) {
        state.withLock { if $0.alarm?.at == instant { $0.alarm = nil } }
        apply { $0.tick($1) }
    }

    func onIdentityChange(of follower: String, _ act: @escaping @Sendable () -> Void) {
        state.withLock { $0.followers[follower] = act }
    }

    func ended(_ id: UInt64) { state.withLock { $0.fetches[id] = nil } }

    /// Replaces the task that listens for changes of the record by other processes; `nil`: only ends the task.
    func watch(_ watch: Task<Void, Never>?) {
        state.withLock { state in
            state.storeWatch?.cancel()
            state.storeWatch = watch
        }
    }
}
