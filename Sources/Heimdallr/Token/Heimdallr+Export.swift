internal import WireText

// Tokens for programs that send their own requests.
extension Heimdallr {
    /// Name of these programs among the resources that accept or refuse tokens.
    private static let programs = "exported"

    /// Returns a token for a program outside. Waits for a token, at most for `limit`.
    /// - Throws: `HeimdallrError`. `ExportFault` for a token that only the proxy can use.
    package func exportedToken(waiting limit: Duration) async throws -> ExportedToken {
        try exported(try await accessToken(for: Self.programs, before: clock.now() + limit))
    }

    /// Returns the current token for a program outside, if it is good for longer than `margin`. Never waits. Without a token,
    /// requests one.
    /// - Throws: `ExportFault` for a token that only the proxy can use.
    package func exportedTokenNow(margin: Duration) throws(ExportFault) -> ExportedToken? {
        guard let token = currentToken(for: Self.programs) else { return nil }
        if let left = token.left(at: clock.now()), left <= margin { return nil }
        return try exported(token)
    }

    private func exported(_ token: AccessToken) throws(ExportFault) -> ExportedToken {
        guard !token.isConstrained else {
            throw ExportFault(
                "the token is bound to a key or a certificate of the proxy, so no other program can use it")
        }
        // Rounded down, so that no program uses the token after its end.
        let timeLeft = token.left(at: clock.now())
        let left = timeLeft.map { Int($0 / .seconds(1)) }
        return ExportedToken(
            value: token.value, end: left.map { Int(clock.wallClock()) + $0 }, left: left, timeLeft: timeLeft,
            life: timeLeft.map { _ in token.issuedAt.duration(to: token.expiresAt) }, members: token.extra)
    }

    /// Reports that a server refused a token that a program had. Has the effect of a 401 with `invalid_token`, and the
    /// same limits. Has none if the token is not the current one.
    package func exportedTokenRefused(_ value: Secret) {
        guard let token = currentToken(), token.value == value else { return }
        _ = refused(token, by: Self.programs, saysInvalid: true, isReplay: false)
    }
}

extension AccessToken {
    /// Whether a server takes the token only with a proof by this client: DPoP (RFC 9449), a certificate (RFC 8705), or
    /// any other confirmation that the token names (`cnf`, RFC 7800).
    var isConstrained: Bool {
        binding != nil || certificate != nil || type != "Bearer" || TokenEnd.claims(of: value)?["cnf"] != nil
    }
}
