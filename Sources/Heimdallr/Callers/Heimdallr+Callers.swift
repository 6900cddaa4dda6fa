// Callers whose tokens are exchanged.
extension Heimdallr {
    /// Whether there was a first outcome: a token, an error, or the need for a login. Clients of callers need none.
    package var hasSettled: Bool { exchangesCallers || look { $0.hasSettled } }

    /// Whether callers' tokens are exchanged, because the grant has `Token.caller`. Use `client(of:)` for their tokens.
    public var exchangesCallers: Bool { callers != nil }

    /// Returns the client of one caller, or this client if callers' tokens are not exchanged. Never waits, and sends
    /// nothing yet. Call this for each request, because unused clients are removed, and at most 1,000 are kept.
    /// - Parameter token: the caller's token, kept by the caller's client. The token's SHA-256 identifies the caller.
    /// - Throws: `CallerRefusal`
    public func client(of token: Span<UInt8>) throws(CallerRefusal) -> Heimdallr {
        guard let callers else { return self }
        return try callers.client(of: token)
    }

    /// Error when a program requests the client's own token.
    static let callerWanted = HeimdallrError.clientRefused(
        .secret(SecretProviderError("this client exchanges the tokens of its callers, and has no token itself")),
        retryAfter: .seconds(3600))
}

extension HeimdallrError {
    /// Whether the server refuses the caller's token, not the client: RFC 8693 section 2.2.2.
    package var refusesCallerToken: Bool {
        guard case .clientRefused(.refused(let error), _) = self else { return false }
        return error.code == .invalidGrant || error.code == .invalidRequest || error.code.rawValue == "invalid_token"
    }
}

extension HeimdallrStatus {
    /// Completes the status of a client that exchanges its callers' tokens.
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
