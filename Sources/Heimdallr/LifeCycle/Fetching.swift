extension TokenLifeCycle {
    /// One token request, from the decision to send it until its record is saved.
    struct Fetch: Sendable {
        let id: FetchID
        fileprivate(set) var kind: FetchKind
        /// The configured refresh token, if this request sends it.
        fileprivate(set) var seed: Secret?
        /// The person at another client whose sign-in this request uses.
        fileprivate(set) var subject: UInt64?
        fileprivate(set) var phase = Phase.inLine

        enum Phase: Sendable {
            /// The request waits for the store or for a slot.
            case inLine
            /// The request's secrets are being read.
            case preparing(since: Instant)
            case sent(at: Instant)
            /// The record of the answer is being saved.
            case saving(AfterSave, startedAt: Instant)
        }

        enum AfterSave: Sendable {
            case publish(AccessToken, refreshed: Bool)
            case fail(TokenEndpointFault)
        }

        /// Time at which the request was sent, or the reading of its secrets began; `nil` while it waits.
        var startedAt: Instant? {
            switch phase {
            case .inLine: nil
            case .preparing(let at), .sent(let at), .saving(_, let at): at
            }
        }

        /// Whether a one-time credential may have been sent, or the answer's record is being saved.
        var isSpending: Bool {
            switch phase {
            case .inLine: false
            case .preparing, .sent: kind != .grant || seed != nil
            case .saving: true
            }
        }
    }
}

/// The token request of a client: none, planned, or under way. At most one begins in each `minInterval`.
struct Fetching: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias Fetch = TokenLifeCycle.Fetch

    let minInterval: Duration
    /// Time after which an unanswered request is given up.
    let patience: Duration
    /// The request under way. No other request is planned meanwhile.
    private(set) var current: Fetch?
    private(set) var dueAt: Instant?
    /// Whether a secret or a certificate of the client has changed since the last request began.
    private var hasRepair = false
    private var nextID: TokenLifeCycle.FetchID = 1
    /// Time of the last token request, whether a fetch or a login sent it.
    private var lastStartedAt: Instant?

    init(minInterval: Duration, patience: Duration) {
        self.minInterval = minInterval
        self.patience = patience
    }

    var isUnderWay: Bool { current != nil }
    var isIdle: Bool { current == nil && dueAt == nil }

    /// Returns the earliest allowed time for a request, not before `instant`.
    func earliest(from instant: Instant) -> Instant { lastStartedAt.map { max(instant, $0 + minInterval) } ?? instant }

    // MARK: Beginning

    /// Plans a request at or after `instant`. A plan for an earlier time stays.
    mutating func plan(from instant: Instant) {
        let due = earliest(from: instant)
        replan(for: min(dueAt ?? due, due))
    }

    /// Plans a request for `instant`, if none is under way. Replaces any other plan.
    mutating func replan(for instant: Instant) { if !isUnderWay { dueAt = instant } }

    mutating func unplan() { dueAt = nil }

    func isDue(at now: Instant) -> Bool { dueAt.map { $0 <= now } ?? false }

    mutating func begin(_ kind: TokenLifeCycle.FetchKind) -> Fetch {
        let fetch = Fetch(id: nextID, kind: kind)
        nextID += 1
        dueAt = nil
        current = fetch
        hasRepair = false
        return fetch
    }

    mutating func noteRepair() { hasRepair = true }

    /// Returns whether there was a repair since the last request began. Counts each repair once.
    mutating func takeRepair() -> Bool {
        defer { hasRepair = false }
        return hasRepair
    }

    // MARK: Under way

    /// Notes that the reading of the request's secrets begins.
    /// - Returns: false if the request was cancelled.
    mutating func prepares(_ id: TokenLifeCycle.FetchID, now: Instant) -> Bool {
        start(id, .preparing(since: now), seed: nil, subject: nil, now: now)
    }

    /// Notes that the request is sent now.
    /// - Parameters: see `TokenLifeCycle.sends`.
    /// - Returns: false if the request was cancelled.
    mutating func sends(_ id: TokenLifeCycle.FetchID, seed: Secret?, subject: UInt64? = nil, now: Instant) -> Bool {
        start(id, .sent(at: now), seed: seed, subject: subject, now: now)
    }

    private mutating func start(
        _ id: TokenLifeCycle.FetchID, _ phase: Fetch.Phase, seed: Secret?, subject: UInt64?, now: Instant
    ) -> Bool {
        guard current?.id == id else { return false }
        current?.seed = seed
        current?.subject = subject
        current?.phase = phase
        lastStartedAt = now
        return true
    }

    /// Notes that the request waits for a slot. This wait does not count towards `patience`.
    /// - Returns: whether to wait; false if the request was cancelled.
    mutating func queues(_ id: TokenLifeCycle.FetchID) -> Bool {
        guard current?.id == id else { return false }
        current?.phase = .inLine
        return true
    }

    mutating func change(_ id: TokenLifeCycle.FetchID, to kind: TokenLifeCycle.FetchKind) {
        if current?.id == id { current?.kind = kind }
    }

    mutating func startedElsewhere(now: Instant) { lastStartedAt = now }

    /// Notes that the answer's record is being saved. `after` is the step after the save.
    mutating func saves(then after: Fetch.AfterSave, now: Instant) {
        let startedAt = current?.startedAt ?? now
        current?.phase = .saving(after, startedAt: startedAt)
    }

    /// Time at which the unanswered request is given up.
    private var givenUpAt: Instant? {
        switch current?.phase {
        case .preparing(let at), .sent(let at): at + patience
        case .inLine, .saving, nil: nil
        }
    }

    /// Returns the request if it has been unanswered for longer than `patience`.
    func stuck(at now: Instant) -> TokenLifeCycle.FetchID? { givenUpAt.flatMap { now >= $0 ? current?.id : nil } }

    /// Ends the request and any plan. Returns the request that was under way.
    @discardableResult
    mutating func end() -> Fetch? {
        defer { (current, dueAt) = (nil, nil) }
        return current
    }

    /// Time at which to begin the planned request, or to give up an unanswered one.
    var wake: Instant? { dueAt ?? givenUpAt }
}
