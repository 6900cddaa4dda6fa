extension TokenLifeCycle {
    /// One token request, from the decision to its end.
    struct Fetch: Sendable {
        let id: FetchID
        fileprivate(set) var kind: FetchKind
        /// The configured refresh token, if this fetch spends it.
        fileprivate(set) var seed: Secret?
        fileprivate(set) var phase = Phase.inLine

        enum Phase: Sendable {
            /// The request is not sent yet.
            case inLine
            case asked(at: Instant)
            /// The record of the answer is being saved.
            case saving(AfterSave, askedAt: Instant)
        }

        /// The step after the save.
        enum AfterSave: Sendable {
            case publish(AccessToken, refreshed: Bool)
            case fail(TokenEndpointFault)
        }

        /// Time of sending; `nil` before.
        var askedAt: Instant? {
            switch phase {
            case .inLine: nil
            case .asked(let at), .saving(_, let at): at
            }
        }

        /// Whether a one-time credential was sent, and its result is not saved yet.
        var isSpending: Bool {
            switch phase {
            case .inLine: false
            case .asked: kind != .grant || seed != nil
            case .saving: true
            }
        }
    }
}

/// The token request of a client: none, planned, or under way. One begins in each `minInterval`.
struct Fetching: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias Fetch = TokenLifeCycle.Fetch

    private enum State: Sendable {
        case idle
        case planned(Instant)
        case underWay(Fetch)
    }

    private let minInterval: Duration
    /// Time after which an unanswered request is given up.
    private let patience: Duration
    private var state = State.idle
    private var nextID: TokenLifeCycle.FetchID = 1
    /// Time of the last token request, logins included.
    private var lastAskedAt: Instant?

    init(minInterval: Duration, patience: Duration) {
        self.minInterval = minInterval
        self.patience = patience
    }

    /// The request under way.
    var current: Fetch? {
        if case .underWay(let fetch) = state { fetch } else { nil }
    }

    /// Time of the planned request.
    var dueAt: Instant? {
        if case .planned(let due) = state { due } else { nil }
    }

    var isUnderWay: Bool { current != nil }

    /// Whether nothing is under way or planned.
    var isIdle: Bool {
        if case .idle = state { true } else { false }
    }

    /// Earliest allowed time from `instant` on.
    func earliest(from instant: Instant) -> Instant {
        lastAskedAt.map { max(instant, $0 + minInterval) } ?? instant
    }

    // MARK: Beginning

    /// Plans a request from `instant` on. An earlier plan stays.
    mutating func plan(from instant: Instant) {
        let due = earliest(from: instant)
        switch state {
        case .idle: state = .planned(due)
        case .planned(let planned): state = .planned(min(planned, due))
        case .underWay: break
        }
    }

    /// Moves the planned request to `instant`.
    mutating func replan(for instant: Instant) {
        guard !isUnderWay else { return }
        state = .planned(instant)
    }

    /// Cancels the planned request.
    mutating func unplan() {
        guard !isUnderWay else { return }
        state = .idle
    }

    /// Whether the planned request is due.
    func isDue(at now: Instant) -> Bool { dueAt.map { $0 <= now } ?? false }

    mutating func begin(_ kind: TokenLifeCycle.FetchKind) -> Fetch {
        let fetch = Fetch(id: nextID, kind: kind)
        nextID += 1
        state = .underWay(fetch)
        return fetch
    }

    // MARK: Under way

    /// The request goes out now, with `seed`, if any.
    /// - Returns: whether to send it.
    mutating func asked(_ id: TokenLifeCycle.FetchID, seed: Secret?, now: Instant) -> Bool {
        guard case .underWay(var fetch) = state, fetch.id == id else { return false }
        fetch.seed = seed
        fetch.phase = .asked(at: now)
        state = .underWay(fetch)
        lastAskedAt = now
        return true
    }

    /// The request waits for a slot. This wait does not count towards `patience`.
    /// - Returns: whether to wait.
    mutating func queued(_ id: TokenLifeCycle.FetchID) -> Bool {
        guard case .underWay(var fetch) = state, fetch.id == id else { return false }
        fetch.phase = .inLine
        state = .underWay(fetch)
        return true
    }

    /// Changes the kind of the request.
    mutating func change(_ id: TokenLifeCycle.FetchID, to kind: TokenLifeCycle.FetchKind) {
        guard case .underWay(var fetch) = state, fetch.id == id else { return }
        fetch.kind = kind
        state = .underWay(fetch)
    }

    /// A login's token request was sent.
    mutating func askedElsewhere(now: Instant) { lastAskedAt = now }

    /// The record of an answer is being saved; `after` follows.
    mutating func saves(then after: Fetch.AfterSave, now: Instant) {
        guard case .underWay(var fetch) = state else { return }
        fetch.phase = .saving(after, askedAt: fetch.askedAt ?? now)
        state = .underWay(fetch)
    }

    /// The request that has been unanswered for too long.
    func stuck(at now: Instant) -> TokenLifeCycle.FetchID? {
        guard let fetch = current, case .asked(let at) = fetch.phase, now >= at + patience else { return nil }
        return fetch.id
    }

    /// - Returns: the request that was under way until now.
    @discardableResult
    mutating func end() -> Fetch? {
        defer { state = .idle }
        return current
    }

    /// Time to begin the planned request, or to give up a stuck one.
    var wake: Instant? {
        switch state {
        case .idle: return nil
        case .planned(let due): return due
        case .underWay(let fetch):
            guard case .asked(let at) = fetch.phase else { return nil }
            return at + patience
        }
    }
}
