/// Intervals and end of polling for a device login: RFC 8628 section 3.5.
struct DevicePolling: Sendable {
    enum Step: Sendable {
        case wait(Duration)
        case done(TokenResponse)
        case fail(LoginError)
    }

    /// Between two questions.
    private(set) var interval: Duration
    private var faultsInARow = 0

    static let longestPause = Duration.seconds(60)

    init(interval: Duration) {
        self.interval = interval
    }

    /// Meaning of an answer. `wait` is not checked against the codes' end: the caller knows the time.
    mutating func next(_ outcome: TokenLifeCycle.Outcome) -> Step {
        switch outcome {
        case .response(let response): return .done(response)
        case .fault(.refused(let error), let retryAfter):
            switch error.code {
            case .authorizationPending:
                faultsInARow = 0
                return .wait(max(interval, retryAfter ?? .zero))
            case .slowDown:
                faultsInARow = 0
                interval += .seconds(5)
                return .wait(max(interval, retryAfter ?? .zero))
            case .expiredToken: return .fail(.expired)
            default:
                guard TokenEndpointFault.refused(error).looksPermanent else { return backOff(retryAfter) }
                return .fail(.refused(error))
            }
        case .fault(let fault, let retryAfter):
            guard fault.looksPermanent else { return backOff(retryAfter) }
            return .fail(.endpoint(fault))
        // Not what a device's question can bring.
        case .adopted, .seedSpent: return .wait(interval)
        }
    }

    /// The server can't be reached, or is out of order: asked less often, and again until the codes end.
    private mutating func backOff(_ retryAfter: Duration?) -> Step {
        faultsInARow += 1
        let pause = interval * (1 << min(faultsInARow, 6))
        return .wait(max(min(max(Self.longestPause, interval), pause), retryAfter ?? .zero))
    }
}
