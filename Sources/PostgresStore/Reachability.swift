/// Outcome of the last attempt to reach the database, and time of the next attempt. While the database is known to be
/// unreachable, calls fail at once, and one caller at a time tries again.
struct Reachability: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Fault of the last attempt; `nil` while the database is reachable.
    private(set) var fault: PostgresFault?
    /// Time of the first success after a broken connection.
    private(set) var backSince: Instant?
    /// Time of the first success after failed attempts, or of the first connection to another server.
    private var returnedAt: Instant?
    /// Time of the process's first connection, if the server had been started or promoted a moment before.
    private var metYoungServerAt: Instant?
    /// Start of the server that was reached last, which distinguishes servers.
    private var server: Int64?
    private var failures = 0
    private var retryAt: Instant?
    /// Deadline of the attempt under way.
    private var triedUntil: Instant?

    static let firstPause = Duration.milliseconds(200)
    static let longestPause = Duration.seconds(1)
    /// Longest pause after refused credentials, because servers lock accounts.
    static let longestPauseAfterRefusal = Duration.seconds(30)
    /// Grace period after the database returns. In this time a replica with an unsaved record saves it, and other
    /// replicas replace no mark, not even one that has ended.
    static let grace = Duration.seconds(5)
    /// Whether a connection broke, and none has been made since.
    private var isBroken = false
    private static let longestTry = Duration.seconds(30)
    private static let settlingTime = Duration.seconds(3)

    /// Returns whether the caller may try now. If so, the caller has to report the outcome.
    mutating func mayTry(now: Instant) -> Bool {
        guard let retryAt else { return true }
        guard now >= retryAt, now >= triedUntil ?? now else { return false }
        triedUntil = now + Self.longestTry
        return true
    }

    func isKnownAway(now: Instant) -> Bool {
        guard let retryAt else { return false }
        return now < retryAt || now < triedUntil ?? now
    }

    mutating func succeeded(now: Instant) {
        let former = self
        self = Reachability(backSince: isBroken ? now : backSince)
        (metYoungServerAt, server) = (former.metYoungServerAt, former.server)
        returnedAt = former.fault == nil ? former.returnedAt : now
    }

    mutating func failed(_ fault: PostgresFault, now: Instant, random: Double) {
        // The next refusal may be one of other credentials, after outages that do not count.
        if fault.isCredentialRefusal, self.fault?.isCredentialRefusal != true { failures = 0 }
        self.fault = fault
        var pause = fault.isCredentialRefusal ? Self.longestPause : Self.firstPause
        let longest = fault.isCredentialRefusal ? Self.longestPauseAfterRefusal : Self.longestPause
        for _ in 0..<min(failures, 8) { pause = min(pause * 2, longest) }
        failures += 1
        retryAt = now + pause * (0.5 + random / 2)
        triedUntil = nil
    }

    /// Lets the next caller try at once: the credentials have changed.
    mutating func retry(now: Instant) {
        guard retryAt != nil else { return }
        (retryAt, failures) = (now, 0)
    }

    /// Notes that the server or the network ended a connection.
    mutating func broke() { isBroken = true }

    /// Notes that a server writes after a time without one.
    mutating func writesAgain(now: Instant) { (isBroken, returnedAt) = (true, now) }

    /// Whether marks that have ended are still valid, because their owners may not have reached the database either.
    func isInGrace(now: Instant) -> Bool { isBroken || backSince.map { now < $0 + Self.grace } ?? false }

    /// Whether the database returned a moment ago, perhaps another server without the last commits. Other processes
    /// reconnect in this time, and write the records that it lacks.
    func isSettling(now: Instant) -> Bool {
        isBroken || fault != nil || returnedAt.map { now < $0 + Self.settlingTime } ?? false
    }

    /// Whether this process, which has no memory of former records, met a server that may lack the last commits.
    func isNewcomer(now: Instant) -> Bool { metYoungServerAt.map { now < $0 + Self.settlingTime } ?? false }

    /// Whether the next connection is the first one.
    var isFirst: Bool { server == nil }

    /// Notes the server of a new connection.
    /// - Parameters:
    ///   - server: the time of its start.
    ///   - isYoung: whether it was started or promoted a moment ago; only the first connection's counts.
    mutating func reached(server: Int64, isYoung: Bool, now: Instant) {
        if isFirst, isYoung { metYoungServerAt = now }
        if let last = self.server, last != server { returnedAt = now }
        self.server = server
    }

    func nextTry(now: Instant) -> Instant { max(retryAt ?? now, triedUntil ?? now) }
}
