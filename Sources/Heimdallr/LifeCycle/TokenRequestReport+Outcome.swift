extension TokenRequestReport.Result {
    /// Makes the result of a report. A well-formed answer with an unusable token counts as a bad answer.
    init(
        _ outcome: TokenLifeCycle.Outcome, by policy: TokenPolicy, askedAt: ContinuousClock.Instant,
        _ moment: Moment
    ) {
        switch outcome {
        case .response(let response):
            let token = try? policy.token(from: response, askedAt: askedAt, keeping: nil, moment)
            self = token.map { !$0.isExpired(at: moment.now) } ?? false ? .success : .badAnswer
        case .adopted: self = .success
        case .seedSpent, .fault(.secret, _), .fault(.store, _), .fault(.discovery, _): self = .notSent
        case .fault(.refused, _), .fault(.limited(_, .some), _): self = .refused
        case .fault(.answer, _): self = .badAnswer
        case .fault(.network, _), .fault(.stuck, _): self = .network
        case .fault(.status, _), .fault(.redirect, _), .fault(.webPage, _), .fault(.limited, _): self = .httpError
        }
    }
}
