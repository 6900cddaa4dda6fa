// Limits the connections whose refusal of a wrong password is delayed, so that one source can't occupy too many.
extension ProxyShard {
    /// Delayed refusals per source on one loop. Further connections are closed at once.
    static let maxHeldGuesses = 64

    /// - Returns: `false` when too many from there are delayed already.
    func holdGuess(from source: String) -> Bool {
        let count = heldGuesses[source] ?? 0
        guard count < Self.maxHeldGuesses else { return false }
        heldGuesses[source] = count + 1
        return true
    }

    func releaseGuess(from source: String) {
        guard let count = heldGuesses[source] else { return }
        heldGuesses[source] = count > 1 ? count - 1 : nil
    }
}
