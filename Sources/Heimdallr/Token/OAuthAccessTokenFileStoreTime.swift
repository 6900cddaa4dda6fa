internal import Cryptography

/// A moment, by every clock that could tell later how long ago it was.
package struct TimeStamp: Sendable, Equatable {
    /// Seconds since 1970-01-01T00:00:00Z, by the wall clock, which can be set.
    package var wall: Int64
    /// Seconds since the start of the machine, by a clock that can't be set and counts suspension.
    var sinceBoot: Int64
    /// Which start of which machine; `nil` when the system does not say.
    var boot: [UInt8]?
    /// Something kept the wall clock right.
    var isSynchronized: Bool

    /// By a wall clock alone, which another machine may not believe.
    package init(wall: Int64, sinceBoot: Int64 = 0, boot: [UInt8]? = nil, isSynchronized: Bool = false) {
        self.wall = wall
        self.sinceBoot = sinceBoot
        self.boot = boot
        self.isSynchronized = isSynchronized
    }

    /// Seconds until `now`, rather too many than too few; `nil`: unknown.
    /// Within one boot the boot clock counts, or the wall clock if it shows a longer time (a paused virtual machine). Otherwise
    /// only the wall clock counts: if it was synchronized then and is now, and the result is not negative.
    func seconds(until now: TimeStamp) -> Int64? {
        let byWall = now.wall.subtractingReportingOverflow(wall)
        guard !byWall.overflow else { return nil }
        if let boot, boot == now.boot {
            let byBoot = now.sinceBoot.subtractingReportingOverflow(sinceBoot)
            guard !byBoot.overflow, byBoot.partialValue >= 0, byBoot.partialValue < .max else { return nil }
            return max(byBoot.partialValue + 1, byWall.partialValue)
        }
        guard isSynchronized, now.isSynchronized, byWall.partialValue >= 0, byWall.partialValue < .max else {
            return nil
        }
        return byWall.partialValue + 1
    }
}

/// The clocks and the disk of a file store, so that tests can hold them.
package struct FileStoreMachine: Sendable {
    package var stamp: @Sendable () -> TimeStamp
    package var clock = HeimdallrClock.system
    /// Does work on the disk. `nil`: a queue of threads that may block.
    package var carryOut: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

    package init(stamp: @escaping @Sendable () -> TimeStamp) { self.stamp = stamp }

    static let system = FileStoreMachine {
        TimeStamp(
            wall: WallClock.now(), sinceBoot: BootClock.now(), boot: BootClock.identifier(),
            isSynchronized: WallClock.isSynchronized())
    }
}

extension StoredRecord {
    /// The record with present wall clock times. An expired access token, or one of unknown age, is left out.
    func record(machine: FileStoreMachine) -> TokenRecord {
        let now = machine.stamp()
        var current = record
        // The life that it was given, and how much of it had gone when it was written down.
        let (life, overflow) = record.expiresAt.subtractingReportingOverflow(record.issuedAt)
        let (age, tooOld) = stamp.wall.subtractingReportingOverflow(record.issuedAt)
        if !overflow, !tooOld, life > 0, let since = stamp.seconds(until: now) {
            let (total, tooLong) = max(0, age).addingReportingOverflow(since)
            if !tooLong, total < life, case (let issued, false) = now.wall.subtractingReportingOverflow(total),
                case (let expires, false) = issued.addingReportingOverflow(life)
            {
                current.issuedAt = issued
                current.expiresAt = expires
                return current
            }
        }
        current.accessToken = nil
        return current
    }
}
