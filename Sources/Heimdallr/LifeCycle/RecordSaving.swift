/// The record to save. It is tried again until it is durable, or until a later one replaces it.
struct RecordSaving: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Of the newest record. Grows with every change.
    private(set) var revision: UInt64 = 0
    /// Fault of the store.
    private(set) var fault: String?
    /// The same, while the store is on another machine that can't be reached.
    private(set) var away: TokenStoreError?
    /// The newest record, while it is not durable.
    private(set) var unsaved: TokenRecord?
    /// The store has no record of this client, but one of the same name for another server or account.
    private(set) var hasForeignRecord = false
    private var dueAt: Instant?
    /// Another attempt is under way.
    private var isUnderWay = false
    private var failuresInARow = 0
    /// Between two attempts. In a shared store others wait for the record, and only for so long.
    private var longestPause = Backoff.transient.cap

    /// Other processes use the store.
    mutating func share() { longestPause = .seconds(1) }

    /// Counts on, past what another process has `stored`.
    mutating func nextRevision(over stored: UInt64 = 0) -> UInt64 {
        revision = max(revision, stored) + 1
        return revision
    }

    /// The store's record has become ours.
    mutating func takeUp(_ revision: UInt64) { self.revision = revision }

    /// Notes the result of a reading of the store.
    mutating func noteReading(fault: TokenStoreError?) {
        self.fault = fault?.description
        away = fault?.kind == .unreachable ? fault : nil
    }

    mutating func noteForeignRecord() { hasForeignRecord = true }

    /// The store can be reached again. What is wrong with a record stays.
    mutating func noteReached() {
        if away != nil, unsaved == nil { fault = nil }
        away = nil
    }

    /// Another object of this client could not save it.
    mutating func inherit(_ record: TokenRecord, now: Instant) {
        unsaved = record
        fault = fault ?? "the newest record is not saved yet"
        dueAt = now
    }

    /// Saving has ended, the first time or a later one: the record is durable, or `fault` says why it is not. Nothing for
    /// one that is not the newest.
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

    /// - Returns: the record to save again now.
    mutating func begin(now: Instant) -> TokenRecord? {
        guard let unsaved, let due = wake, due <= now else { return nil }
        isUnderWay = true
        dueAt = nil
        return unsaved
    }

    /// The store is back. Saves the unsaved record at once, before another process asks with the token that it
    /// replaces.
    mutating func hurry(now: Instant) { if unsaved != nil { dueAt = now } }

    /// Ends the attempt that `begin` started; `ended` tells its result.
    mutating func attemptEnded() { isUnderWay = false }

    /// When `begin` has something.
    var wake: Instant? { isUnderWay || unsaved == nil ? nil : dueAt }
}
