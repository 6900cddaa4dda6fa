// Connections that wait for the refusal of a wrong password: no place may take many of the others' places with them.
extension ProxyShard {
    /// From one place on one loop; further ones are closed at once.
    static let maxHeldGuesses = 64

    /// - Returns: `false` when too many from there wait already.
    func holdGuess(from place: String) -> Bool {
        let count = heldGuesses[place] ?? 0
        guard count < Self.maxHeldGuesses else { return false }
        heldGuesses[place] = count + 1
        return true
    }

    func releaseGuess(from place: String) {
        guard let count = heldGuesses[place] else { return }
        heldGuesses[place] = count > 1 ? count - 1 : nil
    }
}
