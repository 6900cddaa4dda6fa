/// Whether the database was there when it was last tried, and when it may be tried again: whoever asks while it is known
/// to be away is told so at once, and one at a time finds out whether it is back.
struct Reachability: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Why it can't be reached; `nil`: as far as is known it can.
    private(set) var fault: PostgresFault?
    /// When it was reached again after a connection had broken.
    private(set) var backSince: Instant?
    private var failures = 0
    private var retryAt: Instant?
    /// Somebody is finding out; after this time, nobody is any more.
    private var triedUntil: Instant?

    static let firstPause = Duration.milliseconds(200)
    static let longestPause = Duration.seconds(1)
    /// Grace period after the database returns. A replica with an unsaved record saves it in this time; other replicas do not
    /// replace a mark that has ended until it is over.
    let grace: Duration
    /// A connection broke, and none has been made since.
    private var isBroken = false

    init(grace: Duration = .seconds(5)) { self.grace = grace }
    private static let longestTry = Duration.seconds(30)

    /// - Returns: whether the caller shall try now; then it says how that ended.
    mutating func mayTry(now: Instant) -> Bool {
        guard let retryAt else { return true }
        guard now >= retryAt, now >= triedUntil ?? now else { return false }
        triedUntil = now + Self.longestTry
        return true
    }

    /// Whether somebody who asks now would be refused at once.
    func isKnownAway(now: Instant) -> Bool {
        guard let retryAt else { return false }
        return now < retryAt || now < triedUntil ?? now
    }

    mutating func succeeded(now: Instant) {
        if isBroken { backSince = now }
        isBroken = false
        fault = nil
        failures = 0
        retryAt = nil
        triedUntil = nil
    }

    mutating func failed(_ fault: PostgresFault, now: Instant, random: Double) {
        self.fault = fault
        var pause = Self.firstPause
        for _ in 0..<min(failures, 8) { pause = min(pause * 2, Self.longestPause) }
        failures += 1
        retryAt = now + pause * (0.5 + random / 2)
        triedUntil = nil
    }

    /// A connection that stood is no more, and it was not for us to end it.
    mutating func broke() { isBroken = true }

    /// A mark that has ended may have been its holder's, who could not reach the database either.
    func isInGrace(now: Instant) -> Bool { isBroken || backSince.map { now < $0 + grace } ?? false }

    /// When there is sense in trying next.
    func nextTry(now: Instant) -> Instant { max(retryAt ?? now, triedUntil ?? now) }
}
