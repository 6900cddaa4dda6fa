/// The record to save, until it is durable or a later one replaces it.
struct RecordSaving: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Revision of the newest record. Grows with every change.
    private(set) var revision: UInt64 = 0
    /// Fault of the store.
    private(set) var fault: String?
    /// The same while the store is unreachable.
    private(set) var away: TokenStoreError?
    /// The newest record, while it is not durable.
    private(set) var unsaved: TokenRecord?
    /// Whether the store has only a record of this name for another server or account.
    private(set) var hasForeignRecord = false
    private var dueAt: Instant?
    /// Another attempt is under way.
    private var isUnderWay = false
    private var failuresInARow = 0
    /// Longest time between two attempts; short where other processes wait for the record.
    private var longestPause = Backoff.transient.cap

    /// Other processes use the store.
    mutating func share() { longestPause = .seconds(1) }

    /// Returns a revision past ours and past `stored`, that of another process.
    mutating func nextRevision(over stored: UInt64 = 0) -> UInt64 {
        revision = max(revision, stored) + 1
        return revision
    }

    /// The store's record is used.
    mutating func takeUp(_ revision: UInt64) { self.revision = revision }

    /// Notes the result of a reading of the store.
    mutating func noteReading(fault: TokenStoreError?) {
        self.fault = fault?.description
        away = fault?.kind == .unreachable ? fault : nil
    }

    mutating func noteForeignRecord() { hasForeignRecord = true }

    /// The store is reachable again. The fault of a record stays.
    mutating func noteReached() {
        if away != nil, unsaved == nil { fault = nil }
        away = nil
    }

    /// Takes the unsaved record of another object of this client.
    mutating func inherit(_ record: TokenRecord, now: Instant) {
        unsaved = record
        fault = fault ?? "the newest record is not saved yet"
        dueAt = now
    }

    /// Saving has ended, with a `fault` or durably. No effect unless the record is the newest.
    mutating func ended(_ record: TokenRecord, fault: String?, _ moment: Moment) {
        guard record.revision == revision else { return }
        self.fault = fault
        guard fault != nil else {
            hasForeignRecord = false
            giveUp()
            failuresInARow = 0
            return
        }
        unsaved = record
        failuresInARow += 1
        let pause = Backoff.transient.delay(attempt: failuresInARow, random: moment.random())
        dueAt = moment.now + .seconds(1) + min(pause, longestPause)
    }

    /// Drops the unsaved record.
    mutating func giveUp() {
        unsaved = nil
        dueAt = nil
    }

    /// Begins an attempt.
    /// - Returns: the record to save now.
    mutating func begin(now: Instant) -> TokenRecord? {
        guard let unsaved, let due = wake, due <= now else { return nil }
        isUnderWay = true
        dueAt = nil
        return unsaved
    }

    /// Saves the unsaved record at once, before another process spends the token that it replaces.
    mutating func hurry(now: Instant) { if unsaved != nil { dueAt = now } }

    /// Ends the attempt that `begin` started; `ended` tells its result.
    mutating func attemptEnded() { isUnderWay = false }

    /// Time of the next attempt.
    var wake: Instant? { isUnderWay || unsaved == nil ? nil : dueAt }
}
