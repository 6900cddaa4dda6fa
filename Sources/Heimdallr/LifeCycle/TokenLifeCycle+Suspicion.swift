// Responses of protected resources to the token (RFC 6750 section 3.1), judged for each resource separately.
extension TokenLifeCycle {
    /// Handles a 401 to this token. Other resources still get the token. A new token is fetched if that may help.
    /// - Returns: whether to wait for a newer token and replay the request; if false, the 401 is final.
    mutating func refused(
        _ generation: UInt64, by resource: String, saysInvalid: Bool, isReplay: Bool, _ moment: Moment
    ) -> Bool {
        guard stage == .running else { return false }
        // A resource may not know a new token yet, so the request is replayed with the former one.
        if !isReplay, token?.generation == generation, fallBack(now: moment.now) { return true }
        suspicions.noteRefusal(of: generation)
        guard let token, token.generation == generation, !token.isExpired(at: moment.now) else { return !isReplay }
        let refusal = Suspicions.Refusal(
            generation: generation, resource: resource, saysInvalid: saysInvalid, isReplay: isReplay,
            life: token.issuedAt.duration(to: token.expiresAt), isStored: held?.isStored ?? false)
        guard suspicions.refused(refusal, now: moment.now) else { return false }
        if fetching.isUnderWay { return true }
        // Without a new token, callers go on with the old one.
        if let obstacle = self.refusal(now: moment.now) {
            suspicions.giveUp()
            // A token without a known end never expires, so a refusal is the only sign of its end. Once the refresh token has
            // ended, requests get the need for a login instead of the refusal.
            if obstacle == .needsAuthentication, saysInvalid || token.endsBy == .open || announcedNeed {
                askForPerson(now: moment.now)
            }
            return false
        }
        wantToken(now: moment.now)
        tick(moment)
        return true
    }

    /// Notes that `resource` answered with another status than 401.
    mutating func accepted(_ generation: UInt64, by resource: String, isReplay: Bool) {
        suspicions.accepted(generation, at: resource, isReplay: isReplay)
    }

    /// Announces that a login is needed, because a resource refuses the token. The token stays in use. Searches
    /// the store for a login at another process.
    private mutating func askForPerson(now: Instant) {
        noteInvalid()
        if !announcedNeed { needAuthentication() }
        lookAgain(now: now)
    }

    /// Whether a login was announced because a resource called the current token invalid.
    var isTokenInvalid: Bool { held?.isInvalid ?? false }

    /// Fails the callers that wait for a newer token. All resources go on with the current token.
    mutating func resumeReplacing(_ error: HeimdallrError) {
        suspicions.giveUp()
        resume(waiters.removeAll { $0.unwanted != nil }, .failure(error))
    }
}
