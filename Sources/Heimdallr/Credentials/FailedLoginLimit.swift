/// Counts wrong secrets by name, to slow down guessing. A name is usually a source address. While the table is full,
/// all further names share one entry. Not thread-safe: the owner has to lock it.
package struct FailedLoginLimit: Sendable {
    /// Number of wrong secrets within `window` without a delay.
    package static let patience = 10
    package static let window = Duration.seconds(60)
    /// Number of wrong secrets within `rateWindow` that may be compared at all.
    package static let rate = 64
    package static let rateWindow = Duration.seconds(1)
    /// Largest number of remembered names.
    package static let capacity = 1024
    /// Shortest time between two log lines about one name.
    package static let logPause = Duration.seconds(10)

    private struct Guesser {
        /// Times of the last `rate` failures.
        var failures: [ContinuousClock.Instant] = []
        var loggedAt: ContinuousClock.Instant?
        var unlogged = 0

        func isOver(_ now: ContinuousClock.Instant) -> Bool {
            failures.last.map { $0 + FailedLoginLimit.window <= now } ?? true
        }
    }

    private static let sharedName = ""
    private var guessers: [String: Guesser] = [:]

    package init() {}

    package var count: Int { guessers.count }

    /// Whether this name has reached the limit.
    package func isExhausted(_ name: String, now: ContinuousClock.Instant) -> Bool {
        guard let guesser = guessers[name] ?? (isFull ? guessers[Self.sharedName] : nil) else { return false }
        guard guesser.failures.count >= Self.patience else { return false }
        return guesser.failures[guesser.failures.count - Self.patience] + Self.window > now
    }

    /// Whether so many wrong secrets of this name were compared that no further one should be.
    package func isFlooding(_ name: String, now: ContinuousClock.Instant) -> Bool {
        guard let guesser = guessers[name] ?? (isFull ? guessers[Self.sharedName] : nil) else { return false }
        guard guesser.failures.count >= Self.rate, let first = guesser.failures.first else { return false }
        return first + Self.rateWindow > now
    }

    /// Counts a wrong secret.
    /// - Returns: the number of attempts since the last log line, if a new line is due; `nil`: log nothing yet.
    package mutating func failed(_ name: String, now: ContinuousClock.Instant) -> Int? {
        count(name, now) { guesser in
            if guesser.failures.count >= Self.rate { guesser.failures.removeFirst() }
            guesser.failures.append(now)
        }
    }

    /// Counts an attempt that was refused unchecked, because the name had reached the limit.
    /// - Returns: the same as `failed`.
    package mutating func refused(_ name: String, now: ContinuousClock.Instant) -> Int? { count(name, now) { _ in } }

    private mutating func count(
        _ name: String, _ now: ContinuousClock.Instant, _ note: (inout Guesser) -> Void
    ) -> Int? {
        let key = key(name, now)
        var guesser = guessers[key] ?? Guesser()
        defer { guessers[key] = guesser }
        note(&guesser)
        guesser.unlogged += 1
        if let loggedAt = guesser.loggedAt, loggedAt + Self.logPause > now { return nil }
        defer { guesser.unlogged = 0 }
        guesser.loggedAt = now
        return guesser.unlogged
    }

    /// Whether only the shared entry is left.
    private var isFull: Bool { guessers.count >= Self.capacity - 1 }

    private mutating func key(_ name: String, _ now: ContinuousClock.Instant) -> String {
        if guessers[name] != nil || !isFull { return name }
        guessers = guessers.filter { !$0.value.isOver(now) }
        return isFull ? Self.sharedName : name
    }

    /// Returns the stable part of an address: IPv4 addresses (also in IPv6 form) whole, the first 64 bits of IPv6.
    /// - Parameter address: the text that inet_ntop(3) writes. Other text is returned unchanged.
    package static func name(address: String) -> String {
        let address = address.prefix { $0 != "%" }
        guard address.contains(":") else { return String(address) }
        if let dot = address.firstIndex(of: "."), let colon = address[..<dot].lastIndex(of: ":") {
            return address.hasPrefix("::ffff:") ? String(address[address.index(after: colon)...]) : "::/64"
        }
        var groups = address.split(separator: ":", omittingEmptySubsequences: false)
        if let gap = address.firstRange(of: "::") {
            let front = address[..<gap.lowerBound].split(separator: ":")
            let back = address[gap.upperBound...].split(separator: ":")
            groups = front + Array(repeating: "0", count: max(0, 8 - front.count - back.count)) + back
        }
        return groups.prefix(4).joined(separator: ":") + "::/64"
    }
}
