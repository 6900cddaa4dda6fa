internal import Cryptography

/// A time, read from two clocks, so that a later process can tell how long ago it was.
package struct TimeStamp: Sendable, Equatable {
    /// Seconds since 1970-01-01T00:00:00Z, by the wall clock, which can be set.
    package var wall: Int64
    /// Seconds since the start of the machine, by a clock that can't be set and counts suspension.
    var sinceBoot: Int64
    /// Identifier of the machine's current boot; `nil` if the system does not provide one.
    var boot: [UInt8]?
    /// Whether the wall clock was synchronized, for example by NTP.
    var isSynchronized: Bool

    /// Makes a time stamp. Without `boot` and `isSynchronized`, its age stays unknown.
    package init(wall: Int64, sinceBoot: Int64 = 0, boot: [UInt8]? = nil, isSynchronized: Bool = false) {
        self.wall = wall
        self.sinceBoot = sinceBoot
        self.boot = boot
        self.isSynchronized = isSynchronized
    }

    /// Returns the seconds until `now`, rounded up; `nil`: unknown.
    /// Within one boot, the boot clock counts, or the wall clock if it shows more seconds (after a virtual machine was
    /// paused). Across boots, only the wall clock counts, if it was synchronized at both times and did not go back.
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

/// The clocks and the disk of a file store. Tests replace them.
package struct FileStoreMachine: Sendable {
    package var stamp: @Sendable () -> TimeStamp
    package var clock = HeimdallrClock.system
    /// Runs work on the disk; `nil`: on a queue whose threads may block.
    package var carryOut: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

    package init(stamp: @escaping @Sendable () -> TimeStamp) { self.stamp = stamp }

    static let system = FileStoreMachine {
        TimeStamp(
            wall: WallClock.now(), sinceBoot: BootClock.now(), boot: BootClock.identifier(),
            isSynchronized: WallClock.isSynchronized())
    }
}

extension StoredRecord {
    /// Returns the record with its times converted to the present wall clock. Drops the access token if it is expired
    /// or of unknown age.
    func record(machine: FileStoreMachine) -> TokenRecord {
        let now = machine.stamp()
        var current = record
        // The token's lifetime, and its age when the record was saved.
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
