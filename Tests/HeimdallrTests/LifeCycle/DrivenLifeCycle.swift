import Testing

@testable import Heimdallr

/// A life cycle with its time, its store and its server in a test's hands. What it decides is collected.
struct DrivenLifeCycle {
    typealias Instant = ContinuousClock.Instant

    var life: TokenLifeCycle
    let begin = ContinuousClock.now
    var now: Instant
    var wall: Int64 = 1_700_000_000
    /// Jitter.
    var chance = 0.5
    /// The fetch that was begun last.
    var fetch: (id: UInt64, kind: TokenLifeCycle.FetchKind)?
    var fetches: [TokenLifeCycle.FetchKind] = []
    var cancelled: [UInt64] = []
    var outcomes: [UInt64: Result<AccessToken, HeimdallrError>] = [:]
    var events: [HeimdallrEvent.Kind] = []
    var resaves: [TokenRecord] = []
    var enrolments: [Enrolment?] = []
    var readings: [TokenLifeCycle.Reading] = []
    var nextWaiter: UInt64 = 1

    init(needs: GrantNeeds = .nobody, refreshBefore: Duration = .seconds(60), namesIdentityAnew: Bool = false) {
        now = begin
        var settings = TokenLifeCycle.Settings(
            needs: needs,
            policy: TokenPolicy(
                defaultExpiresIn: .seconds(300), defaultTokenType: nil, treatAsBearer: [], requestedScope: []),
            refreshBefore: refreshBefore, patience: .seconds(15))
        settings.namesIdentityAnew = namesIdentityAnew
        life = TokenLifeCycle(settings: settings)
    }

    var moment: Moment { moment(chance) }

    func moment(_ chance: Double) -> Moment { Moment(now: now, wallClock: wall) { chance } }

    /// Seconds since the beginning.
    var time: Double { begin.duration(to: now) / .seconds(1) }
    var wake: Double? { life.nextWake.map { begin.duration(to: $0) / .seconds(1) } }
    var eventNames: [String] { events.map { HeimdallrEvent(client: "c", kind: $0).name } }

    mutating func collect() {
        for action in life.takeActions() {
            switch action {
            case .read(let reading): readings.append(reading)
            case .fetch(let id, let kind):
                fetch = (id, kind)
                fetches.append(kind)
            case .cancelFetch(let id): cancelled.append(id)
            case .resume(let id, let result):
                #expect(outcomes[id] == nil, "a second outcome for waiter \(id)")
                outcomes[id] = result
            case .resave(let record): resaves.append(record)
            case .enrol(let enrolment): enrolments.append(enrolment)
            case .emit(let kind): events.append(kind)
            }
        }
    }

    /// Time passes, and every alarm on the way rings.
    mutating func pass(_ seconds: Double) {
        let end = now + .seconds(seconds)
        var rings = 0
        while let wake = life.nextWake, wake <= end {
            now = max(now, wake)
            life.tick(moment)
            collect()
            rings += 1
            if rings > 10_000 {
                Issue.record("the alarm rings for ever")
                break
            }
        }
        wall += Int64((begin.duration(to: end) / .seconds(1)).rounded(.down)) - Int64(time.rounded(.down))
        now = end
        life.tick(moment)
        collect()
    }

    mutating func start(stored: TokenRecord? = nil, fault: String? = nil) {
        life.start(moment)
        collect()
        load(stored, fault: fault)
    }

    mutating func load(_ record: TokenRecord? = nil, fault: String? = nil) {
        read(.start, fault.map { .failure(TokenStoreError($0)) } ?? .success(record))
    }

    mutating func read(_ reading: TokenLifeCycle.Reading, _ result: Result<TokenRecord?, TokenStoreError>) {
        life.read(reading, result, moment)
        collect()
    }

    @discardableResult
    mutating func wait(_ seconds: Double = 10) -> UInt64 {
        let id = nextWaiter
        nextWaiter += 1
        life.wait(id, until: now + .seconds(seconds), moment)
        collect()
        return id
    }

    mutating func use() -> String? {
        let token = life.use(moment)
        collect()
        return token?.value.revealed
    }

    mutating func reject(_ generation: UInt64? = nil) {
        guard let generation = generation ?? life.token?.generation else { return }
        life.reject(generation: generation, moment)
        collect()
    }

    /// The server answers the fetch under way, after `delay`.
    @discardableResult
    mutating func answer(
        _ outcome: TokenLifeCycle.Outcome, after delay: Double = 0, saving fault: TokenStoreError? = nil
    ) -> TokenRecord? {
        let record = answerWithoutSaving(outcome, after: delay)
        if let record { saved(record, fault: fault) }
        return record
    }

    mutating func answerWithoutSaving(_ outcome: TokenLifeCycle.Outcome, after delay: Double = 0) -> TokenRecord? {
        guard let id = fetch?.id else {
            Issue.record("no fetch is under way")
            return nil
        }
        #expect(life.sends(id, now: now) == true)
        if delay > 0 { pass(delay) }
        let record = life.answered(id, outcome, moment)
        savingID = id
        if fetch?.id == id { fetch = nil }
        collect()
        return record
    }

    private var savingID: UInt64 = 0

    mutating func saved(_ record: TokenRecord, fault: TokenStoreError? = nil) {
        life.saved(savingID, record, fault: fault, moment)
        collect()
    }

    static func token(
        _ value: String, expiresIn: Double? = 3600, refreshToken: String? = nil
    ) -> TokenLifeCycle.Outcome {
        .response(
            TokenResponse(
                accessToken: Secret(value), tokenType: "Bearer", expiresIn: expiresIn,
                refreshToken: refreshToken.map { Secret($0) }))
    }

    static func refused(_ code: OAuthError.Code, status: Int = 400) -> TokenLifeCycle.Outcome {
        .fault(.refused(OAuthError(status: status, code: code)), retryAfter: nil)
    }

    static func status(_ status: Int, retryAfter: Duration? = nil) -> TokenLifeCycle.Outcome {
        .fault(.status(status), retryAfter: retryAfter)
    }

    func record(
        _ value: String?, expiresIn: Int64 = 1000, age: Int64 = 100, refreshToken: String? = nil, revision: UInt64 = 7
    ) -> TokenRecord {
        TokenRecord(
            revision: revision, accessToken: value.map { Secret($0) }, issuedAt: wall - age,
            expiresAt: wall + expiresIn,
            refreshToken: refreshToken.map { Secret($0) })
    }
}

extension TokenStoreError: ExpressibleByStringLiteral {
    public init(stringLiteral text: String) { self.init(text) }
}

extension Result<AccessToken, HeimdallrError> {
    var token: String? {
        if case .success(let token) = self { token.value.revealed } else { nil }
    }
    var error: HeimdallrError? {
        if case .failure(let error) = self { error } else { nil }
    }
}
