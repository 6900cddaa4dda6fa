/// Intervals and end of polling for a device login: RFC 8628 section 3.5.
struct DevicePolling: Sendable {
    enum Step: Sendable {
        case wait(Duration)
        case done(TokenResponse)
        case fail(LoginError)
    }

    /// Interval between two polls.
    private(set) var interval: Duration
    private var faultsInARow = 0

    static let longestPause = Duration.seconds(60)

    init(interval: Duration) { self.interval = interval }

    /// Returns the next step after an answer. The caller has to check whether the codes expire during a `wait`.
    mutating func next(_ outcome: TokenLifeCycle.Outcome) -> Step {
        switch outcome {
        case .response(let response): return .done(response)
        case .fault(.refused(let error), let retryAfter) where [.authorizationPending, .slowDown].contains(error.code):
            faultsInARow = 0
            if error.code == .slowDown { interval += .seconds(5) }
            return .wait(max(interval, retryAfter ?? .zero))
        case .fault(.refused(let error), _) where error.code == .expiredToken: return .fail(.expired)
        case .fault(let fault, let retryAfter):
            return fault.looksPermanent ? .fail(LoginError(fault)) : backOff(retryAfter)
        // A poll has no such outcome.
        case .adopted, .seedSpent: return .wait(interval)
        }
    }

    /// Returns a longer wait after a fault of the server. Polling goes on until the codes expire.
    private mutating func backOff(_ retryAfter: Duration?) -> Step {
        faultsInARow += 1
        let pause = interval * (1 << min(faultsInARow, 6))
        return .wait(max(min(max(Self.longestPause, interval), pause), retryAfter ?? .zero))
    }
}
