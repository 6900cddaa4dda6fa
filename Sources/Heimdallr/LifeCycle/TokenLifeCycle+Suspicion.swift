// Answers of protected resources about the token (RFC 6750 section 3.1), each resource for itself.
extension TokenLifeCycle {
    /// A resource answered 401 to a request with this token. The token stays in use for other resources; a new one is
    /// fetched if that may help.
    /// - Returns: whether to wait for a newer token and repeat the request; else the 401 stands.
    mutating func refused(
        _ generation: UInt64, by resource: String, saysInvalid: Bool, isReplay: Bool, now: Instant,
        random: () -> Double
    ) -> Bool {
        guard stage == .running else { return false }
        guard let token, token.generation == generation, !token.isExpired(at: now) else { return !isReplay }
        let refusal = Suspicions.Refusal(
            generation: generation, resource: resource, saysInvalid: saysInvalid, isReplay: isReplay,
            life: token.issuedAt.duration(to: token.expiresAt), isStored: generation == storedGeneration)
        guard suspicions.refused(refusal, now: now) else { return false }
        if fetching.isUnderWay { return true }
        // A caller that can't have a new token goes on with the old one.
        if let obstacle = self.refusal(now: now) {
            suspicions.giveUp()
            if obstacle == .needsAuthentication, saysInvalid { askForPerson(instead: token, now: now) }
            return false
        }
        wantToken(now: now)
        tick(now: now, random: random)
        return true
    }

    /// A resource called the token invalid, and only a person can bring another. The token stays in use: other
    /// resources may still accept it.
    private mutating func askForPerson(instead token: AccessToken, now: Instant) {
        if !announcedNeed {
            invalidGeneration = token.generation
            needAuthentication()
        }
        lookAgain(now: now)
    }

    /// The token in use is one that `askForPerson` was about.
    var isTokenInvalid: Bool { token != nil && token?.generation == invalidGeneration }

    /// The token for one resource, where it is not suspect there. Without any effect.
    func tokenInUse(for resource: String, now: Instant) -> AccessToken? {
        guard let token = tokenInUse(now: now), !suspicions.isSuspect(token.generation, at: resource) else {
            return nil
        }
        return token
    }

    /// The same, with the effects of `use`.
    mutating func use(for resource: String, now: Instant, random: () -> Double) -> AccessToken? {
        guard let token = use(now: now, random: random), !suspicions.isSuspect(token.generation, at: resource) else {
            return nil
        }
        return token
    }

    /// Somebody waits for a token for `resource`: the one in use, unless it is suspect there or no newer than `refused`.
    mutating func wait(
        _ id: WaiterID, for resource: String, insteadOf refused: UInt64?, until deadline: Instant, now: Instant,
        random: () -> Double
    ) {
        var unwanted = refused
        if let token, suspicions.isSuspect(token.generation, at: resource) { unwanted = token.generation }
        wait(id, insteadOf: unwanted, until: deadline, now: now, random: random)
    }

    /// Resumes the callers that wait for another token than the one in use.
    mutating func resumeReplacing(_ error: HeimdallrError) {
        suspicions.giveUp()
        resume(waiters.removeAll { $0.unwanted != nil }, .failure(error))
    }
}
