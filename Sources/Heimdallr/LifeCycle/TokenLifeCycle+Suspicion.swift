// Answers of protected resources about the token (RFC 6750 section 3.1), each resource for itself.
extension TokenLifeCycle {
    /// A resource answered 401 to this token. It stays in use elsewhere; a new one is fetched if that may help.
    /// - Returns: whether to wait for a newer token and repeat the request; else the 401 stands.
    mutating func refused(
        _ generation: UInt64, by resource: String, saysInvalid: Bool, isReplay: Bool, _ moment: Moment
    ) -> Bool {
        guard stage == .running else { return false }
        guard let token, token.generation == generation, !token.isExpired(at: moment.now) else { return !isReplay }
        let refusal = Suspicions.Refusal(
            generation: generation, resource: resource, saysInvalid: saysInvalid, isReplay: isReplay,
            life: token.issuedAt.duration(to: token.expiresAt), isStored: held?.isStored ?? false)
        guard suspicions.refused(refusal, now: moment.now) else { return false }
        if fetching.isUnderWay { return true }
        // Without a new token, callers go on with the old one.
        if let obstacle = self.refusal(now: moment.now) {
            suspicions.giveUp()
            if obstacle == .needsAuthentication, saysInvalid { askForPerson(now: moment.now) }
            return false
        }
        wantToken(now: moment.now)
        tick(moment)
        return true
    }

    /// Another answer than 401 came from `resource`.
    mutating func accepted(_ generation: UInt64, by resource: String, isReplay: Bool) {
        suspicions.accepted(generation, at: resource, isReplay: isReplay)
    }

    /// Announces the need of a login for a token that a resource calls invalid. Other resources may still accept it.
    private mutating func askForPerson(now: Instant) {
        if !announcedNeed {
            noteInvalid()
            needAuthentication()
        }
        lookAgain(now: now)
    }

    /// Whether `askForPerson` was about the token in use.
    var isTokenInvalid: Bool { held?.isInvalid ?? false }

    /// Resumes the callers that wait for another token than the one in use.
    mutating func resumeReplacing(_ error: HeimdallrError) {
        suspicions.giveUp()
        resume(waiters.removeAll { $0.unwanted != nil }, .failure(error))
    }
}
