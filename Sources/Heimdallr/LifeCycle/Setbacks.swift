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
    }

    /// The last failure that delays requests.
    private(set) var failure: Failure?
    private(set) var inARow = 0
    /// The last fault of any kind.
    private(set) var lastFault: (fault: TokenEndpointFault, at: Instant)?
    private(set) var lastSuccessAt: Instant?
    var rejections = Rejections()

    mutating func note(_ fault: TokenEndpointFault, at now: Instant) { lastFault = (fault, now) }

    mutating func failed(_ failure: Failure) {
        inARow += 1
        self.failure = failure
    }

    mutating func succeeded(at now: Instant) {
        forget()
        lastSuccessAt = now
    }

    mutating func forget() {
        forgetFailure()
        lastFault = nil
    }

    /// Allows the next request now, or at the end of the server's `Retry-After`. Returns whether there is a failure.
    mutating func endBackoff(now: Instant) -> Bool {
        guard let failure else { return false }
        self.failure?.retryAt = min(failure.retryAt, max(now, failure.serverWants ?? now))
        inARow = 0
        return true
    }

    /// Forgets the failure, so that a request may be sent at once.
    mutating func forgetFailure() {
        failure = nil
        inARow = 0
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
