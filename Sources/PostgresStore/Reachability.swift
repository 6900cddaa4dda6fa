/// Whether the database was there when it was last tried, and when it may be tried again: whoever asks while it is known
/// to be away is told so at once, and one at a time finds out whether it is back.
struct Reachability: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Why it can't be reached; `nil`: as far as is known it can.
    private(set) var fault: PostgresFault?
    /// When it was reached again after a connection had broken, or another server was found in its place.
    private(set) var backSince: Instant?
    /// Which start of which server it is.
    private var serverStart: Int64?
    private var failures = 0
    private var retryAt: Instant?
    /// Somebody is finding out; after this time, nobody is any more.
    private var triedUntil: Instant?

    static let firstPause = Duration.milliseconds(200)
    static let longestPause = Duration.seconds(1)
    /// Who could not save what it got before the database went, or is still waiting for it, has so long to do so, once it
    /// is back, before others ask.
    let grace: Duration
    /// A connection broke, and none has been made since.
    private var isBroken = false

    init(grace: Duration = .milliseconds(2500)) { self.grace = grace }
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

    /// A standby may have taken the place of the one before, or a pooler has hidden that it was started anew.
    mutating func sees(_ start: ServerStart, now: Instant) {
        if start.ago >= .zero, start.ago < grace { backSince = max(backSince ?? now - start.ago, now - start.ago) }
        if let serverStart, serverStart != start.time { backSince = now }
        serverStart = start.time
    }

    /// Until when nobody takes a lease.
    var graceEnd: Instant? { backSince.map { $0 + grace } }

    /// When there is sense in trying next.
    func nextTry(now: Instant) -> Instant { max(retryAt ?? now, triedUntil ?? now) }
}

/// Since when the server is up.
struct ServerStart: Sendable {
    /// By its own clock, in microseconds since 1970: tells one server, and one start of it, from another.
    var time: Int64
    /// Less than nothing where its clock was set back: then nobody knows.
    var ago: Duration
}
