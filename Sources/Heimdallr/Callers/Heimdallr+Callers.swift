// Callers whose tokens are exchanged.
extension Heimdallr {
    /// Whether callers' tokens are exchanged: the grant has `Token.caller`. `client(of:)` then has the tokens.
    public var exchangesCallers: Bool { callers != nil }

    /// Returns the client of one caller; this client, if callers' tokens are not exchanged. Never waits, and sends nothing
    /// yet. Call it for each request: unused clients are removed, and at most 1,000 are kept.
    /// - Parameter token: the caller's token, kept as long as the client. Its SHA-256 identifies the caller.
    /// - Throws: `CallerRefusal`
    public func client(of token: Span<UInt8>) throws(CallerRefusal) -> Heimdallr {
        guard let callers else { return self }
        return try callers.client(of: token)
    }

    /// The answer to a request for the client's own token.
    static let callerWanted = HeimdallrError.clientRefused(
        .secret(SecretProviderError("each caller's own token is exchanged, so there is none of the client's")),
        retryAfter: .seconds(3600))
}

extension HeimdallrError {
    /// The server refuses the caller's token, not the client: RFC 8693 section 2.2.2.
    package var refusesWhatWasShown: Bool {
        guard case .clientRefused(.refused(let error), _) = self else { return false }
        return error.code == .invalidGrant || error.code == .invalidRequest || error.code.rawValue == "invalid_token"
    }
}

extension HeimdallrStatus {
    /// Status of a client whose callers have the tokens.
    mutating func note(
        _ overview: (count: Int, hasToken: Bool, waiters: Int, lastSuccessAt: ContinuousClock.Instant?),
        now: ContinuousClock.Instant
    ) {
        callers = overview.count
        waiters = overview.waiters
        hasSettled = true
        if state != .stopped { state = overview.hasToken ? .ready : .idle }
        sinceLastSuccess = overview.lastSuccessAt.map { $0.duration(to: now) }
    }
}
