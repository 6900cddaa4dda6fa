// Callers who bring a token of their own each, which is exchanged for one of theirs.
extension Heimdallr {
    /// Whether each caller's own token is exchanged: the grant is a `TokenExchangeGrant` of `Token.caller`. There is no
    /// token of the client itself then: ask `client(of:)` for a caller's.
    public var exchangesCallers: Bool { callers != nil }

    /// The client that keeps the token of one caller. Never waits, and sends nothing yet. Ask anew for each request:
    /// those that nobody asks for are let go, and at most 1,000 are held.
    /// - Parameter token: what the caller showed; only its SHA-256 is kept to tell callers apart, and the token itself for
    ///   as long as the client.
    /// - Returns: this client itself where callers are not exchanged.
    /// - Throws: `CallerRefusal`
    public func client(of token: Span<UInt8>) throws(CallerRefusal) -> Heimdallr {
        guard let callers else { return self }
        return try callers.client(of: token)
    }

    /// What whoever asks for the client's own token gets.
    static let callerWanted = HeimdallrError.clientRefused(
        .secret(SecretProviderError("each caller's own token is exchanged, so there is none of the client's")),
        retryAfter: .seconds(3600))
}

extension HeimdallrError {
    /// The server refuses what was shown to it, and not who showed it: RFC 8693 section 2.2.2.
    package var refusesWhatWasShown: Bool {
        guard case .clientRefused(.refused(let error), _) = self else { return false }
        return error.code == .invalidGrant || error.code == .invalidRequest || error.code.rawValue == "invalid_token"
    }
}

extension HeimdallrStatus {
    /// Of a client that has no token of its own.
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
