/// Issued tokens and their grants. All have the same lifetime, so the oldest expires first. When the table holds
/// `capacity` tokens, a new one replaces the oldest.
struct TokenTable<Grant: Sendable>: Sendable {
    private struct Entry: Sendable {
        var grant: Grant
        let expiresAt: Instant
    }

    let lifetime: Duration
    let capacity: Int
    private var entries: [String: Entry] = [:]
    /// Tokens, oldest first, including tokens that were removed from `entries`.
    private var order: [String] = []

    init(lifetime: Duration, capacity: Int) {
        self.lifetime = lifetime
        self.capacity = capacity
    }

    var count: Int { entries.count }

    mutating func insert(_ token: String, _ grant: Grant, now: Instant) {
        while let oldest = order.first {
            if let entry = entries[oldest] {
                guard entry.expiresAt <= now || entries.count >= capacity else { break }
                entries[oldest] = nil
            }
            order.removeFirst()
        }
        entries[token] = Entry(grant: grant, expiresAt: now.advanced(by: lifetime))
        order.append(token)
    }

    /// Returns the grant of a token; `nil` if the token was never issued, has expired or was removed.
    func grant(for token: String, now: Instant) -> Grant? {
        entries[token].flatMap { now < $0.expiresAt ? $0.grant : nil }
    }

    mutating func update(_ token: String, _ change: (inout Grant) -> Void) {
        guard var entry = entries[token] else { return }
        change(&entry.grant)
        entries[token] = entry
    }

    mutating func remove(_ token: String) { entries[token] = nil }

    mutating func remove(where condition: (Grant) -> Bool) { entries = entries.filter { !condition($0.value.grant) } }
}
