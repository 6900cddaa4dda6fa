/// Failures of token requests since the last success, and the time of that success.
struct Setbacks: Sendable {
    typealias Instant = ContinuousClock.Instant

    struct Failure: Sendable {
        enum Kind: Sendable, Equatable {
            case unavailable(TokenEndpointFault)
            case refused(TokenEndpointFault)
            case needsAuthentication

            /// Whether the next attempt may succeed without a repair.
            var mayPass: Bool {
                switch self {
                case .unavailable: true
                case .refused(.secret(let error)): error.mayPass
                case .refused, .needsAuthentication: false
                }
            }
        }

        var kind: Kind
        var at: Instant
        var retryAt: Instant
        /// Time before which the server allows no request (`Retry-After`, at most an hour).
        var serverWants: Instant?
        /// Whether a secret, a key or a certificate has changed since.
        fileprivate(set) var isRepaired = false
    }

    /// The last failure that delays requests.
    private(set) var failure: Failure?
    private(set) var inARow = 0
    /// Number of repairs since the last success. None of them but the last can have helped.
    private var repairs = 0
    /// The last fault of any kind.
    private(set) var lastFault: (fault: TokenEndpointFault, at: Instant)?
    private(set) var lastSuccessAt: Instant?
    var rejections = Rejections()

    mutating func note(_ fault: TokenEndpointFault, at now: Instant) { lastFault = (fault, now) }

    mutating func failed(_ failure: Failure) {
        inARow += 1
        self.failure = failure
    }

    /// Counts a repair. Returns the time of the next request: now, or after a pause that grows with repairs of no avail,
    /// as of a secret that is written again and again.
    mutating func repair(now: Instant) -> Instant {
        defer { repairs += 1 }
        guard repairs > 0 else {
            inARow = 0
            return now
        }
        return now + Backoff.repair.ceiling(attempt: repairs)
    }

    mutating func succeeded(at now: Instant) {
        forget()
        lastSuccessAt = now
    }

    mutating func forget() {
        forgetFailure()
        lastFault = nil
    }

    /// Ends the backoff after a repair, but not the server's `Retry-After`. Returns whether there is a failure.
    mutating func endBackoff(now: Instant) -> Bool {
        guard let failure else { return false }
        if !failure.isRepaired {
            let next = max(repair(now: now), failure.serverWants ?? now)
            self.failure?.isRepaired = true
            self.failure?.retryAt = min(failure.retryAt, next)
        }
        return true
    }

    /// Forgets the failure, so that a request may be sent at once.
    mutating func forgetFailure() {
        failure = nil
        (inARow, repairs) = (0, 0)
    }
}

/// Consecutive tokens refused on their first use, as with a wrong audience. A pause then limits the token requests.
struct Rejections: Sendable {
    private(set) var inARow = 0
    /// Time before which no new token is requested.
    private(set) var until: ContinuousClock.Instant?

    /// - Parameter least: shortest time between two token requests.
    mutating func rejected(onFirstUse: Bool, least: Duration, _ moment: Moment) {
        inARow = onFirstUse ? inARow + 1 : 0
        guard inARow >= 2 else { return }
        until = moment.now + max(least, Backoff.rejection.delay(attempt: inARow - 1, random: moment.random()))
    }

    /// Ends the pause, because the next token request begins.
    mutating func tried() { until = nil }

    /// Ends the row: a token expired or was replaced without a refusal.
    mutating func endRow() { inARow = 0 }
}
