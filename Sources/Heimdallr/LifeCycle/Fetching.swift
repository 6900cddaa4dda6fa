extension TokenLifeCycle {
    /// One token request, from the moment it is decided on.
    struct Fetch: Sendable {
        let id: FetchID
        fileprivate(set) var kind: FetchKind
        /// The refresh token that was handed in and is spent with this fetch.
        fileprivate(set) var seed: Secret?
        fileprivate(set) var phase = Phase.inLine

        enum Phase: Sendable {
            /// It waits for its turn.
            case inLine
            case asked(at: Instant)
            /// An answer is here, and its record is being saved.
            case saving(AfterSave, askedAt: Instant)
        }

        /// The step after the save.
        enum AfterSave: Sendable {
            case publish(AccessToken, refreshed: Bool)
            case fail(TokenEndpointFault)
        }

        /// When the request was sent; `nil` while it stands in line.
        var askedAt: Instant? {
            switch phase {
            case .inLine: nil
            case .asked(let at), .saving(_, let at): at
            }
        }

        /// Whether a credential that works once was sent, and its result is not saved yet.
        var isSpending: Bool {
            switch phase {
            case .inLine: false
            case .asked: kind != .grant || seed != nil
            case .saving: true
            }
        }
    }
}

/// The token request of a client: none, planned, or under way. At most one at a time, and one begun in each
/// `minInterval`.
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
    /// When a token request was last sent, a login's too.
    private var lastAskedAt: Instant?

    init(minInterval: Duration, patience: Duration) {
        self.minInterval = minInterval
        self.patience = patience
    }

    /// The request under way.
    var current: Fetch? {
        if case .underWay(let fetch) = state { fetch } else { nil }
    }

    /// When the next one is planned for.
    var dueAt: Instant? {
        if case .planned(let due) = state { due } else { nil }
    }

    var isUnderWay: Bool { current != nil }

    /// Nothing is under way, nor planned.
    var isIdle: Bool {
        if case .idle = state { true } else { false }
    }

    /// As early as it may be, from `instant` on.
    func earliest(from instant: Instant) -> Instant {
        lastAskedAt.map { max(instant, $0 + minInterval) } ?? instant
    }

    // MARK: Beginning

    /// One is wanted, from `instant` on. What is planned for earlier stays.
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

    /// The request goes out now. `seed`: the refresh token that was handed in and is spent with it.
    /// - Returns: whether it still should go out.
    mutating func asked(_ id: TokenLifeCycle.FetchID, seed: Secret?, now: Instant) -> Bool {
        guard case .underWay(var fetch) = state, fetch.id == id else { return false }
        fetch.seed = seed
        fetch.phase = .asked(at: now)
        state = .underWay(fetch)
        lastAskedAt = now
        return true
    }

    /// The request is ready and waits for a slot. This wait does not count towards `patience`.
    /// - Returns: whether it still should go out.
    mutating func queued(_ id: TokenLifeCycle.FetchID) -> Bool {
        guard case .underWay(var fetch) = state, fetch.id == id else { return false }
        fetch.phase = .inLine
        state = .underWay(fetch)
        return true
    }

    /// It is made in another way than was planned.
    mutating func change(_ id: TokenLifeCycle.FetchID, to kind: TokenLifeCycle.FetchKind) {
        guard case .underWay(var fetch) = state, fetch.id == id else { return }
        fetch.kind = kind
        state = .underWay(fetch)
    }

    /// A token request went out that is none of these.
    mutating func askedElsewhere(now: Instant) { lastAskedAt = now }

    /// An answer is here; `after` is for when its record is saved.
    mutating func saves(then after: Fetch.AfterSave, now: Instant) {
        guard case .underWay(var fetch) = state else { return }
        fetch.phase = .saving(after, askedAt: fetch.askedAt ?? now)
        state = .underWay(fetch)
    }

    /// The one that has been asked for too long ago.
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

    /// Time of the next action: begin the planned request, or give up a stuck one.
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
