internal import Cryptography

/// Known callers, limited in number and bytes. The rate of callers without a successful exchange is limited too.
struct CallerTable<Client: Sendable>: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Greatest number of callers.
    static var capacity: Int { 1000 }
    /// Largest total size of the callers' tokens, in bytes.
    static var maxBytes: Int { 4 << 20 }
    /// Largest number of callers before their first success. One more is allowed after each `newPause`.
    static var maxNew: Int { 256 }
    static var newPause: Duration { .milliseconds(100) }
    /// Time after its last request at which a caller without an exchanged token is removed. A refusal of the caller's
    /// token is then forgotten too.
    static var patience: Duration { .seconds(300) }

    struct Entry: Sendable {
        fileprivate(set) var client: Client
        fileprivate let size: Int
        /// Expiry of the caller's token, from its `exp`.
        let endsAt: Instant?
        fileprivate var usedAt: Instant
        fileprivate var isProven = false
        /// Whether the client was made before a reload, with the former settings.
        fileprivate(set) var isInherited = false
    }

    private var entries: [Fingerprint: Entry] = [:]
    private(set) var bytes = 0
    /// Number of callers without a success, at the time `newCountAt`. Each `newPause` that passes takes off one.
    private var newCount = 0.0
    private var newCountAt: Instant?
    private(set) var lastSuccessAt: Instant?

    var count: Int { entries.count }
    var clients: [Client] { entries.values.map(\.client) }

    /// Returns the entry of a known caller. Removes the caller and throws if its token has expired.
    mutating func entry(of caller: Fingerprint, now: Instant) throws(CallerRefusal) -> Entry? {
        guard let entry = entries[caller] else { return nil }
        if let endsAt = entry.endsAt, endsAt <= now {
            remove(caller)
            throw .expired
        }
        entries[caller]?.usedAt = now
        return entry
    }

    /// Gives a known caller a new client, with the current settings.
    mutating func replace(_ caller: Fingerprint, with client: Client) {
        entries[caller]?.client = client
        entries[caller]?.isInherited = false
    }

    /// Takes over the callers of `other` that are unknown here, up to the limits.
    mutating func takeOver(_ other: CallerTable) {
        for (caller, var entry) in other.entries
        where entries[caller] == nil && entries.count < Self.capacity && bytes + entry.size <= Self.maxBytes {
            entry.isInherited = true
            entries[caller] = entry
            bytes += entry.size
        }
        lastSuccessAt = [lastSuccessAt, other.lastSuccessAt].compactMap(\.self).max()
    }

    mutating func admitNew(now: Instant) throws(CallerRefusal) {
        if let newCountAt { newCount = max(0, newCount - (newCountAt.duration(to: now) / Self.newPause)) }
        newCountAt = now
        guard newCount + 1 <= Double(Self.maxNew) else {
            throw .tooManyNew(retryAfter: Self.newPause * (newCount + 1 - Double(Self.maxNew)))
        }
        newCount += 1
    }

    /// Adds a caller. Over a limit, removes callers without an exchanged token first, then the least recently used.
    mutating func add(
        _ client: Client, _ caller: Fingerprint, size: Int, endsAt: Instant?, now: Instant, hasToken: (Client) -> Bool
    ) {
        remove(caller)
        while entries.count >= Self.capacity || bytes + size > Self.maxBytes, let victim = victim(hasToken) {
            remove(victim)
        }
        entries[caller] = Entry(client: client, size: size, endsAt: endsAt, usedAt: now)
        bytes += size
    }

    private func victim(_ hasToken: (Client) -> Bool) -> Fingerprint? {
        let ranked = entries.map { (key: $0.key, hasToken: hasToken($0.value.client), usedAt: $0.value.usedAt) }
        return ranked.min { one, other in
            one.hasToken == other.hasToken ? one.usedAt < other.usedAt : other.hasToken
        }?.key
    }

    /// Notes a successful exchange. After the first success the caller is no longer new.
    mutating func succeeded(_ caller: Fingerprint, now: Instant) {
        lastSuccessAt = now
        guard entries[caller]?.isProven == false else { return }
        entries[caller]?.isProven = true
        newCount = max(0, newCount - 1)
    }

    /// Removes callers whose own token has expired, and callers unused for `patience` that have no exchanged token.
    mutating func sweep(now: Instant, hasToken: (Client) -> Bool) {
        for (caller, entry) in entries {
            let isOver = entry.endsAt.map { $0 <= now } ?? false
            if isOver || entry.usedAt + Self.patience <= now && !hasToken(entry.client) { remove(caller) }
        }
    }

    private mutating func remove(_ caller: Fingerprint) {
        if let entry = entries.removeValue(forKey: caller) { bytes -= entry.size }
    }

    mutating func removeAll() {
        entries = [:]
        bytes = 0
    }
}

/// Reason why a caller gets no client.
public enum CallerRefusal: Error, Sendable, Hashable {
    /// The value is no token: empty, longer than 16 KiB, or outside the grammar of RFC 6750 section 2.1.
    case malformed
    /// The caller's token has expired by its `exp` (RFC 7519 section 4.1.4).
    case expired
    /// Too many new callers had no successful exchange. The caller may try again after this time.
    case tooManyNew(retryAfter: Duration)
    /// `Heimdallr.shutdown()` was called.
    case stopped
}
