/// The client's record in the store: the record to save until it is durable, and the next reading after a failed one.
struct RecordSaving: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias Reading = TokenLifeCycle.Reading

    private enum Save: Sendable {
        /// The newest record is durable, or there is none.
        case done
        /// Record that the object before this one could not save. It waits for the first reading.
        case inherited(TokenRecord)
        case planned(TokenRecord, at: Instant)
        case underWay(TokenRecord)
        /// A later record could not be saved while the save of `former` is still under way.
        case queued(TokenRecord, behind: TokenRecord, at: Instant)
    }

    private var save = Save.done
    private var failuresInARow = 0
    /// The reading to repeat, and its failures in a row. `at`: `nil` while it is under way.
    private var rereading: (reading: Reading, at: Instant?, failures: Int)?
    /// Revision of the newest record. Grows with every change.
    private(set) var revision: UInt64 = 0
    private(set) var fault: TokenStoreError?
    /// Whether the store has only a record of this name for another server or account.
    private(set) var hasForeignRecord = false
    /// Whether other processes use the store.
    private(set) var isShared = false

    /// Number of readings after a change by another process. The next notification begins anew.
    private static let readingsOfChange = 5

    /// The newest record, while it is not durable.
    var unsaved: TokenRecord? {
        switch save {
        case .done: nil
        case .inherited(let record), .planned(let record, _), .underWay(let record),
            .queued(let record, _, _):
            record
        }
    }

    /// The fault, while the store is unreachable.
    var away: TokenStoreError? { fault?.kind == .unreachable ? fault : nil }

    /// Time of the next save or reading.
    var wake: Instant? {
        guard case .planned(_, let due) = save else { return rereading?.at }
        return min(due, rereading?.at ?? due)
    }

    mutating func share() { isShared = true }

    /// Returns a revision past ours and past `stored`, that of another process.
    mutating func nextRevision(over stored: UInt64 = 0) -> UInt64 {
        revision = max(revision, stored) + 1
        return revision
    }

    /// The store's record is used.
    mutating func takeUp(_ revision: UInt64) { self.revision = revision }

    mutating func noteForeignRecord() { hasForeignRecord = true }

    // MARK: Reading

    /// Whether the store has been unreadable from the start, and no record of ours has been saved since.
    var isUnread: Bool { revision == 0 && fault != nil }

    /// Notes the result of a reading, or of an attempt to reach the store.
    mutating func noteReading(fault: TokenStoreError?) { self.fault = fault }

    /// The store is reachable again. The fault of a record stays.
    mutating func noteReached() { if away != nil, unsaved == nil { fault = nil } }

    /// Plans the next reading. A change is read some times only, an unread record until it is there.
    mutating func planReading(after reading: Reading, hasFailed: Bool, _ moment: Moment) {
        if reading == .repair, rereading?.reading == .change { return }
        var failures = (rereading?.reading == reading ? rereading?.failures ?? 0 : 0) + 1
        rereading = nil
        let isChange = reading == .change && hasFailed && failures < Self.readingsOfChange
        guard isChange || isUnread else { return }
        if reading == .change, !isChange { failures = 1 }
        let pause = Backoff.transient.delay(attempt: failures, random: moment.random())
        rereading = (
            isChange ? .change : .repair, moment.now + (isChange ? .milliseconds(200) : .seconds(1)) + pause, failures
        )
    }

    mutating func beginReading(now: Instant) -> Reading? {
        guard let due = rereading?.at, due <= now else { return nil }
        rereading?.at = nil
        return rereading?.reading
    }

    // MARK: Saving

    /// Keeps the unsaved record of another object of this client until the first reading.
    mutating func inherit(_ record: TokenRecord) { save = .inherited(record) }

    /// Plans to save the record of another object of this client.
    mutating func saveInherited(_ record: TokenRecord, now: Instant) {
        save = .planned(record, at: now)
        fault = fault ?? TokenStoreError("the newest record is not saved yet")
    }

    mutating func takeInherited() -> TokenRecord? {
        guard case .inherited(let record) = save else { return nil }
        save = .done
        return record
    }

    /// Saving has ended, with a `fault` or durably. No effect unless the record is the newest.
    mutating func ended(_ record: TokenRecord, fault: TokenStoreError?, _ moment: Moment) {
        if case .queued(let newest, record, let due) = save { save = .planned(newest, at: due) }
        guard record.revision == revision else { return }
        self.fault = fault
        guard fault != nil else {
            hasForeignRecord = false
            save = .done
            failuresInARow = 0
            return
        }
        failuresInARow += 1
        var pause = Backoff.transient.delay(attempt: failuresInARow, random: moment.random())
        // Other processes wait for the record.
        if isShared { pause = min(pause, .seconds(1)) }
        let due = moment.now + .seconds(1) + pause
        switch save {
        case .underWay(let former) where former != record, .queued(_, let former, _):
            save = .queued(record, behind: former, at: due)
        default: save = .planned(record, at: due)
        }
    }

    mutating func giveUp() { save = .done }

    mutating func begin(now: Instant) -> TokenRecord? {
        guard case .planned(let record, let due) = save, due <= now else { return nil }
        save = .underWay(record)
        return record
    }

    /// Saves the unsaved record at once, before another process spends the token that it replaces.
    mutating func hurry(now: Instant) { if case .planned(let record, _) = save { save = .planned(record, at: now) } }
}
