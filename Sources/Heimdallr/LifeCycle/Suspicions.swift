/// Verdicts on the 401 responses to one client's token. A resource is any name that the caller chooses.
/// A 401 makes the token suspect for that resource, and one new token is fetched. If the resource also refuses the new
/// token, the token is not the cause. This resource's 401s then start no token request for a time that doubles.
struct Suspicions: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias Generation = UInt64

    /// State of one resource. A token's generation is higher than those of all earlier tokens.
    private struct Record {
        /// The refused token, while a new token is fetched.
        var suspect: Generation?
        var accepted: Generation?
        var refused: Generation?
        /// Time until which this resource's 401s start no token request.
        var quietUntil: Instant?
        /// Number of consecutive doubts: 401s that made a token suspect, without proof that the token was at fault.
        var doubts = 0
        /// Whether the last doubt has no verdict yet.
        var isOpen = false
        /// Number of consecutive tokens that this resource rejected as `invalid_token` before it accepted any, and the
        /// earliest time at which the next rejection may start a refresh.
        var invalid = (count: 0, until: Instant?.none)
    }

    private var records: [String: Record] = [:]
    /// Newest token that is suspect for any resource.
    private var newestSuspect: Generation?
    /// Newest token that any resource refused.
    private(set) var newestRefused: Generation?
    var former: FormerToken?

    /// First pause without token requests after a resource's 401s. Each further pause is twice as long.
    private static let pause = Duration.seconds(4)

    /// A 401 response of `resource`.
    struct Refusal {
        var generation: Generation
        var resource: String
        /// Whether the challenge says `invalid_token`.
        var saysInvalid: Bool
        /// Whether the request is a replay: it was refused before with an older token.
        var isReplay: Bool
        /// Time from the token's issue to its expiry.
        var life: Duration
        /// Whether the token came from a store. It may have been invalid for a long time.
        var isStored: Bool
    }

    /// Notes a 401 response to a request with any token. A refused former token is of no use.
    mutating func noteRefusal(of generation: Generation) {
        newestRefused = max(newestRefused ?? 0, generation)
        if former?.token.generation == generation { former = nil }
    }

    /// Judges a 401 response to a request with the current token.
    /// - Returns: whether the token is now suspect and a new token should be requested.
    mutating func refused(_ refusal: Refusal, now: Instant) -> Bool {
        var record = records[refusal.resource] ?? Record()
        defer { records[refusal.resource] = record }
        let isNew = record.refused != refusal.generation
        record.refused = refusal.generation
        let wasAccepted = record.accepted == refusal.generation
        if wasAccepted {
            record.invalid = (0, nil)
        } else if isNew, refusal.saysInvalid, !refusal.isStored {
            let count = record.invalid.count + 1
            // A resource that expects another audience refuses every token. The pause limits the token requests.
            let pause = count < 2 ? .zero : Backoff.rejection.ceiling(attempt: count - 1)
            record.invalid = (count, now + pause)
        }
        if refusal.isReplay {
            acquit(&record, refusal, isNew: isNew, now)
            return false
        }
        if record.suspect == refusal.generation { return true }
        let mayDoubt = refusal.saysInvalid && !wasAccepted && record.invalid.until.map { now >= $0 } ?? true
        if let until = record.quietUntil, now < until, !mayDoubt { return false }
        record.suspect = refusal.generation
        newestSuspect = refusal.generation
        // Begins the pause already now: without a replay there may never be a verdict.
        doubt(&record, refusal.life, now)
        record.isOpen = true
        return true
    }

    /// Handles a 401 to a replay. The new token was refused too, so the token is not at fault. Several replays with one
    /// token count once.
    private func acquit(_ record: inout Record, _ refusal: Refusal, isNew: Bool, _ now: Instant) {
        guard isNew || record.isOpen else { return }
        record.suspect = nil
        if refusal.isStored {
            record.quietUntil = nil
        } else if record.isOpen {
            record.quietUntil = now + Self.length(record.doubts, refusal.life)
        } else {
            doubt(&record, refusal.life, now)
        }
        record.isOpen = false
    }

    private func doubt(_ record: inout Record, _ life: Duration, _ now: Instant) {
        // A pause that ended long ago is forgotten.
        if let until = record.quietUntil, now - until > Self.length(record.doubts, life) { record.doubts = 0 }
        record.doubts += 1
        record.quietUntil = now + Self.length(record.doubts, life)
    }

    private static func length(_ doubts: Int, _ life: Duration) -> Duration {
        Backoff(base: pause, cap: max(life, .seconds(1))).ceiling(attempt: doubts)
    }

    /// Notes that a resource accepted the token.
    /// - Parameter isReplay: whether the resource had refused this request with an older token.
    mutating func accepted(_ generation: Generation, at resource: String, isReplay: Bool) {
        var record = records[resource] ?? Record()
        record.accepted = max(record.accepted ?? 0, generation)
        if let other = former?.token.generation, generation > other { former = nil }
        record.invalid = (0, nil)
        if isReplay {
            record.doubts = 0
            record.quietUntil = nil
            record.isOpen = false
        }
        records[resource] = record
    }

    /// Whether the token is suspect for any resource.
    func concern(_ generation: Generation) -> Bool {
        newestSuspect == generation && records.values.contains { $0.suspect == generation }
    }

    /// Whether a request to `resource` should wait for the next token.
    func isSuspect(_ generation: Generation, at resource: String?) -> Bool {
        guard newestSuspect == generation, let resource else { return false }
        return records[resource]?.suspect == generation
    }

    /// Ends all suspicion, because no new token was received. All resources go on with the old token.
    mutating func giveUp() {
        for resource in records.keys { records[resource]?.suspect = nil }
        newestSuspect = nil
    }
}
