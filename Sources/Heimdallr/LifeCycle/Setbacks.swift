/// Failures of token requests since the last success, and the time of that success.
struct Setbacks: Sendable {
    typealias Instant = ContinuousClock.Instant

    struct Failure: Sendable {
        enum Kind: Sendable, Equatable {
            case unavailable(TokenEndpointFault)
            case refused(TokenEndpointFault)
            case needsAuthentication
        }

        var kind: Kind
        var at: Instant
        /// Until then it is remembered, and nothing is asked; then it is tried again.
        var retryAt: Instant
        /// The server asked for this, as far as it is taken seriously.
        var serverWants: Instant?
    }

    /// The last one that keeps callers from asking.
    private(set) var failure: Failure?
    private(set) var inARow = 0
    /// The last one of any kind.
    private(set) var lastFault: (fault: TokenEndpointFault, at: Instant)?
    private(set) var lastSuccessAt: Instant?

    mutating func note(_ fault: TokenEndpointFault, at now: Instant) { lastFault = (fault, now) }

    mutating func failed(_ failure: Failure) {
        inARow += 1
        self.failure = failure
    }

    mutating func succeeded(at now: Instant) {
        forget()
        lastSuccessAt = now
    }

    /// Forgets all failures.
    mutating func forget() {
        forgetFailure()
        lastFault = nil
    }

    /// It may be asked again at once.
    mutating func forgetFailure() {
        failure = nil
        inARow = 0
    }

    /// The last failure is later than the last success.
    var isFailing: Bool {
        guard let failure else { return false }
        return lastSuccessAt.map { failure.at > $0 } ?? true
    }
}

/// Tokens that the resource refused on their first use, one after the other: a wrong audience is not a token request per
/// request.
struct Rejections: Sendable {
    private(set) var inARow = 0
    /// No new token is fetched before.
    private(set) var until: ContinuousClock.Instant?

    /// - Parameter least: between two token requests, whatever happens.
    mutating func rejected(onFirstUse: Bool, least: Duration, _ moment: Moment) {
        inARow = onFirstUse ? inARow + 1 : 0
        guard inARow >= 2 else { return }
        until = moment.now + max(least, Backoff.rejection.delay(attempt: inARow - 1, random: moment.random()))
    }

    /// The next token request begins.
    mutating func tried() { until = nil }

    /// A token went, or was replaced, without being refused.
    mutating func endRow() { inARow = 0 }
}
