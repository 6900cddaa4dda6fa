/// State of the client's record in the store: the record that is not durable yet, and the next repeated reading.
struct RecordSaving: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias Reading = TokenLifeCycle.Reading

    private enum Save: Sendable {
        /// The newest record is durable, or there is none.
        case done
        /// Record that the client's previous object could not save. It is kept until the store was first read.
        case inherited(TokenRecord)
        case planned(TokenRecord, at: Instant)
        case underWay(TokenRecord)
        /// The newest record could not be saved. The save of the older record `behind` is still under way.
        case queued(TokenRecord, behind: TokenRecord, at: Instant)
    }

    private var save = Save.done
    private var failuresInARow = 0
    /// The reading to repeat, and its number of consecutive failures. `at` is `nil` while the reading is under way.
    private var rereading: (reading: Reading, at: Instant?, failures: Int)?
    /// Revision of the newest record.
    private(set) var revision: UInt64 = 0
    private(set) var fault: TokenStoreError?
    /// Refresh token of the record in the store, as far as this object knows.
    private var storedRefreshToken: Secret?
    /// Whether the store's only record of this client's name is for another server or account.
    private(set) var hasForeignRecord = false
    /// Whether other processes use the store.
    private(set) var isShared = false

    /// Number of attempts to read a change by another process. The next notification starts the count again.
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

    /// The fault, if only this object has the newest refresh token; otherwise `nil`.
    var faultOfRefreshToken: TokenStoreError? {
        guard let token = unsaved?.refreshToken, token != storedRefreshToken else { return nil }
        return fault ?? TokenStoreError("the newest record is not saved yet")
    }

    /// The fault if the store is unreachable; otherwise `nil`.
    var away: TokenStoreError? { fault?.kind == .unreachable ? fault : nil }

    /// Time of the next save or reading.
    var wake: Instant? {
        guard case .planned(_, let due) = save else { return rereading?.at }
        return min(due, rereading?.at ?? due)
    }

    /// Whether the store is unreachable and was never read, and the next reading begins before `deadline`.
    func mayRead(before deadline: Instant) -> Bool {
        isUnread && away != nil && rereading?.at.map { $0 < deadline } ?? true
    }

    mutating func share() { isShared = true }

    /// Returns a revision greater than the current one and than `stored`, the revision in the store.
    mutating func nextRevision(over stored: UInt64 = 0) -> UInt64 {
        revision = max(revision, stored) + 1
        return revision
    }

    /// Takes over the store's record.
    mutating func takeUp(_ revision: UInt64, refreshToken: Secret? = nil) {
        self.revision = revision
        storedRefreshToken = refreshToken
    }

    mutating func noteForeignRecord() { hasForeignRecord = true }

    // MARK: Reading

    /// Whether no reading of the store has succeeded since the start, and this object has made no record.
    var isUnread: Bool { revision == 0 && fault != nil }

    /// Notes the result of a reading, or of an attempt to reach the store.
    mutating func noteReading(fault: TokenStoreError?) { self.fault = fault }

    /// Notes that the store is reachable again. The fault stays while a record is unsaved.
    mutating func noteReached() { if away != nil, unsaved == nil { fault = nil } }

    /// Plans another reading, if needed. A failed reading of a change is repeated a few times. While the store
    /// `isUnread`, readings go on without end.
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

    /// Keeps the unsaved record of the client's previous object until the store was first read.
    mutating func inherit(_ record: TokenRecord) { save = .inherited(record) }

    /// Plans to save the record of the client's previous object.
    mutating func saveInherited(_ record: TokenRecord, now: Instant) {
        save = .planned(record, at: now)
        storedRefreshToken = nil
        fault = fault ?? TokenStoreError("the newest record is not saved yet")
    }

    mutating func takeInherited() -> TokenRecord? {
        guard case .inherited(let record) = save else { return nil }
        save = .done
        return record
    }

    /// Handles the end of a save. If the newest record could not be saved, plans another save. After the save of an
    /// older record, the queued save of the newest record may begin.
    mutating func ended(_ record: TokenRecord, fault: TokenStoreError?, _ moment: Moment) {
        if case .queued(let newest, record, let due) = save { save = .planned(newest, at: due) }
        guard record.revision == revision else { return }
        self.fault = fault
        guard fault != nil else {
            hasForeignRecord = false
            storedRefreshToken = record.refreshToken
            save = .done
            failuresInARow = 0
            return
        }
        if fault?.hasRecord == true { storedRefreshToken = record.refreshToken }
        failuresInARow += 1
        var pause = Backoff.transient.delay(attempt: failuresInARow, random: moment.random())
        // Other processes wait for the record, so the pause is short.
        if isShared { pause = min(pause, .seconds(1)) }
        let due = moment.now + .seconds(1) + pause
        switch save {
        case .underWay(let former) where former != record, .queued(_, let former, _):
            save = .queued(record, behind: former, at: due)
        default: save = .planned(record, at: due)
        }
    }

    /// Forgets the record, which the caller removes from the store, too.
    mutating func giveUp() {
        save = .done
        storedRefreshToken = nil
    }

    mutating func begin(now: Instant) -> TokenRecord? {
        guard case .planned(let record, let due) = save, due <= now else { return nil }
        save = .underWay(record)
        return record
    }

    /// Plans the pending save for now: no other process should send the refresh token that the record replaces.
    mutating func hurry(now: Instant) { if case .planned(let record, _) = save { save = .planned(record, at: now) } }
}
