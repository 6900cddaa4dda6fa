internal import WireText

/// Recent attempts of one client to register (RFC 7591), the last one for each issuer. Stored with the enrolment.
struct Registrations: Sendable, Equatable {
    struct Entry: Sendable, Equatable {
        var issuer: String
        /// Time of the last attempt, in seconds since 1970.
        var at: Int64
        /// Whether this registration replaced a lost client less than an hour after the previous registration.
        var isRenewal = false
        var failures = 0
    }

    private(set) var entries: [Entry] = []

    /// Largest number of issuers within an hour.
    static let maxIssuers = 16
    /// Seconds between two registrations at one issuer.
    static let pause: Int64 = 3600
    /// Seconds to wait after the first failure. Each further failure doubles this wait, up to `pause`.
    static let pauseAfterFailure: Int64 = 60

    // MARK: Waiting

    /// Returns the seconds until the limits above allow the next registration at an issuer. Once an hour, the
    /// replacement of a lost client needs no wait.
    func wait(at issuer: String, replacing isLost: Bool, now: Int64) -> Int64 {
        guard let entry = entries.first(where: { $0.issuer == issuer }) else {
            let recent = entries.map { Self.rest(of: Self.pause, since: $0.at, now) }.filter { $0 > 0 }
            return recent.count < Self.maxIssuers ? 0 : recent.min() ?? 0
        }
        guard entry.failures == 0 else {
            let pause = Self.pauseAfterFailure << Int64(min(entry.failures - 1, 8))
            return Self.rest(of: min(pause, Self.pause), since: entry.at, now)
        }
        return isLost && !entry.isRenewal ? 0 : Self.rest(of: Self.pause, since: entry.at, now)
    }

    /// Returns the rest of a pause. If the clock was set back, the pause is over.
    private static func rest(of pause: Int64, since time: Int64, _ now: Int64) -> Int64 {
        now >= time ? max(0, pause - (now - time)) : 0
    }

    // MARK: Attempts

    mutating func succeeded(at issuer: String, replacing isLost: Bool, now: Int64) {
        let former = entries.first { $0.issuer == issuer }
        let isSoon = former.map { Self.rest(of: Self.pause, since: $0.at, now) > 0 } ?? false
        put(Entry(issuer: issuer, at: now, isRenewal: isLost && isSoon), now)
    }

    mutating func failed(at issuer: String, now: Int64) {
        var entry = entries.first { $0.issuer == issuer } ?? Entry(issuer: issuer, at: now)
        entry.at = now
        entry.failures = min(entry.failures + 1, 16)
        put(entry, now)
    }

    private mutating func put(_ entry: Entry, _ now: Int64) {
        entries.removeAll { Self.rest(of: Self.pause, since: $0.at, now) == 0 }
        replace(entry)
    }

    private mutating func replace(_ entry: Entry) {
        entries.removeAll { $0.issuer == entry.issuer }
        entries = (entries + [entry]).suffix(Self.maxIssuers)
    }

    /// Adds the registrations of another process. Of two attempts at one issuer, the later counts.
    mutating func add(_ others: Registrations) {
        let later = others.entries.filter { other in
            entries.allSatisfy { $0.issuer != other.issuer || $0.at < other.at }
        }
        for other in later { replace(other) }
    }
}

// In the store.
extension Registrations {
    var json: JSON {
        .array(
            entries.map { entry in
                .object([
                    .init("issuer", .string(entry.issuer)), .init("at", .number(Int(entry.at))),
                    .init("renewal", .bool(entry.isRenewal)), .init("failures", .number(entry.failures)),
                ])
            })
    }

    init(_ value: JSONValue?) {
        guard case .array(let elements)? = value else { return }
        entries = elements.prefix(Self.maxIssuers).compactMap { element in
            element["issuer"]?.string.map { issuer in
                Entry(
                    issuer: issuer, at: max(0, Enrolment.number(element["at"])),
                    isRenewal: element["renewal"] == .bool(true),
                    failures: Int(clamping: min(16, max(0, Enrolment.number(element["failures"])))))
            }
        }
    }
}
