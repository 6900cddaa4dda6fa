import Testing

@testable import Heimdallr

@Suite struct `What is being saved` {
    private let begin = ContinuousClock.now

    private func at(_ seconds: Double) -> ContinuousClock.Instant { begin + .seconds(seconds) }

    private func record(_ revision: UInt64) -> TokenRecord {
        TokenRecord(revision: revision, accessToken: Secret("T"), issuedAt: 0, expiresAt: 1, refreshToken: nil)
    }

    private func end(
        _ saving: inout RecordSaving, _ revision: UInt64, _ fault: TokenStoreError?, at seconds: Double,
        chance: Double = 1
    ) {
        saving.ended(record(revision), fault: fault, Moment(now: at(seconds), wallClock: 0) { chance })
    }

    @Test("revisions count on, past what another process has stored")
    func revisions() {
        var saving = RecordSaving()
        #expect(saving.nextRevision() == 1)
        #expect(saving.nextRevision(over: 7) == 8)
        #expect(saving.nextRevision(over: 3) == 9)
        saving.takeUp(4)
        #expect(saving.nextRevision() == 5)
    }

    @Test func `a record that is in the file in spite of the fault is not lost at a stop`() {
        for hasRecord in [false, true] {
            var saving = RecordSaving()
            var record = record(1)
            record.refreshToken = Secret("R2")
            _ = saving.nextRevision()
            var fault = TokenStoreError("full")
            fault.hasRecord = hasRecord
            saving.ended(record, fault: fault, Moment(now: begin, wallClock: 0) { 1 })
            #expect(saving.fault != nil && saving.unsaved == record, "it is still to be saved")
            #expect((saving.faultOfRefreshToken == nil) == hasRecord)
        }
    }

    @Test func `a record of the object before is a fault until it is durable`() {
        var saving = RecordSaving()
        saving.inherit(record(3))
        #expect(saving.unsaved == record(3))
        #expect(saving.wake == nil, "the store is read first")
        #expect(saving.takeInherited() == record(3))
        saving.takeUp(3)
        saving.saveInherited(record(3), now: begin)
        #expect(saving.begin(now: begin) == record(3))
        #expect(saving.fault != nil)
        end(&saving, 3, nil, at: 1)
        #expect(saving.fault == nil)
    }

    @Test func `a stop loses a refresh token only if the store does not have it`() {
        func record(_ revision: UInt64, _ refreshToken: String?) -> TokenRecord {
            TokenRecord(
                revision: revision, accessToken: Secret("T"), issuedAt: 0, expiresAt: 1,
                refreshToken: refreshToken.map { Secret($0) })
        }
        let moment = Moment(now: begin, wallClock: 0) { 1 }
        var saving = RecordSaving()
        saving.takeUp(1, refreshToken: Secret("R1"))
        #expect(saving.faultOfRefreshToken == nil)
        for (token, isLost) in [("R1", false), ("R2", true), (nil, false)] as [(String?, Bool)] {
            let new = record(saving.nextRevision(), token)
            saving.ended(new, fault: "disk full", moment)
            #expect((saving.faultOfRefreshToken == "disk full") == isLost, "\(token ?? "none")")
        }
        let last = record(saving.nextRevision(), "R3")
        saving.ended(last, fault: nil, moment)
        saving.ended(record(saving.nextRevision(), "R3"), fault: "disk full", moment)
        #expect(saving.faultOfRefreshToken == nil)
        // Only the former object knows what the store has.
        saving.saveInherited(last, now: begin)
        #expect(saving.faultOfRefreshToken != nil)
    }

    @Test("a failed save is tried again, ever later, until it works; the fault is there meanwhile")
    func again() {
        var saving = RecordSaving()
        #expect(saving.nextRevision() == 1)
        var now = 0.0
        var pauses: [Double] = []
        end(&saving, 1, "disk full", at: now)
        for _ in 0..<6 {
            #expect(saving.fault == "disk full")
            guard let wake = saving.wake else {
                Issue.record("never again")
                return
            }
            pauses.append(at(now).duration(to: wake) / .seconds(1))
            #expect(saving.begin(now: wake - .milliseconds(1)) == nil)
            #expect(saving.begin(now: wake) == record(1))
            #expect(saving.wake == nil)
            #expect(saving.begin(now: wake) == nil, "one at a time")
            now = begin.duration(to: wake) / .seconds(1)
            end(&saving, 1, "disk full", at: now)
        }
        #expect(pauses == [2, 3, 5, 9, 17, 31])
        end(&saving, 1, nil, at: now)
        #expect(saving.fault == nil)
        #expect(saving.unsaved == nil)
        #expect(saving.wake == nil)
    }

    @Test("where others wait for the record, its save is tried every two seconds at least")
    func shared() {
        var saving = RecordSaving()
        saving.share()
        #expect(saving.nextRevision() == 1)
        for attempt in 0..<8 {
            end(&saving, 1, "away", at: Double(attempt))
            #expect(saving.wake.map { at(Double(attempt)).duration(to: $0) <= .seconds(2) } == true)
        }
    }

    @Test("a later record takes the place of one that could not be saved, and an old one's end says nothing")
    func later() {
        var saving = RecordSaving()
        #expect(saving.nextRevision() == 1)
        end(&saving, 1, "disk full", at: 0)
        #expect(saving.begin(now: at(60)) == record(1))
        #expect(saving.nextRevision() == 2)
        end(&saving, 2, "still full", at: 61)
        #expect(saving.wake == nil, "the old attempt is under way")
        end(&saving, 1, nil, at: 62)
        #expect(saving.fault == "still full")
        #expect(saving.unsaved == record(2))
        #expect(saving.wake != nil)
        saving.giveUp()
        #expect(saving.wake == nil)
        #expect(saving.unsaved == nil)
    }

    @Test("a failed first reading is repeated until the record is there, one after a change four times")
    func readings() {
        var saving = RecordSaving()
        func pause(after reading: TokenLifeCycle.Reading, hasFailed: Bool = true) -> Double? {
            saving.planReading(after: reading, hasFailed: hasFailed, Moment(now: begin, wallClock: 0) { 1 })
            guard let wake = saving.wake else { return nil }
            #expect(saving.beginReading(now: wake - .milliseconds(1)) == nil)
            #expect(saving.beginReading(now: wake) == reading)
            #expect(saving.beginReading(now: wake) == nil, "one at a time")
            return begin.duration(to: wake) / .seconds(1)
        }
        saving.noteReading(fault: "away")
        #expect((1...7).map { _ in pause(after: .repair) } == [2, 3, 5, 9, 17, 31, 31])
        saving.noteReading(fault: nil)
        #expect(pause(after: .repair, hasFailed: false) == nil)
        saving.takeUp(1)
        #expect((1...5).map { _ in pause(after: .change) } == [1.2, 2.2, 4.2, 8.2, nil])
        #expect(pause(after: .change) == 1.2, "another notification")
        #expect(pause(after: .change, hasFailed: false) == nil)
    }
}
