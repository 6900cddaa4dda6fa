// Limits how many connections of one source wait for a delayed 407, so that no source can occupy too many.
extension ProxyShard {
    /// Limit of delayed refusals per source on one loop. Further connections are closed at once.
    static let maxDelayedLogins = 64

    /// - Returns: `false` if too many refusals for this source are delayed already.
    func delayFailedLogin(from source: String) -> Bool {
        let count = delayedLogins[source] ?? 0
        guard count < Self.maxDelayedLogins else { return false }
        delayedLogins[source] = count + 1
        return true
    }

    func releaseDelayedLogin(from source: String) {
        guard let count = delayedLogins[source] else { return }
        delayedLogins[source] = count > 1 ? count - 1 : nil
    }
}
