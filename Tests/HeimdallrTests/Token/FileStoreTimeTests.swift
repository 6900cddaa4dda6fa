import TestSupport
import Testing

@testable import Heimdallr

/// The stored access token used after a restart, for all changes of the clocks.
@Suite struct `The file store and time` {
    /// A token of an hour, saved; then `happening`; then what another process makes of it.
    private func seconds(
        life: Int64 = 3600, clock: HeldClock = HeldClock(), after happening: (HeldClock) -> Void
    ) async throws -> Int64? {
        let folder = try FileStoreFolder()
        var record = FileStoreFolder.record()
        record.expiresAt = record.issuedAt + life
        try await folder.store(machine: clock.machine).save(record, client: "billing")
        happening(clock)
        let loaded = try #require(try await folder.store(machine: clock.machine).load(client: "billing"))
        #expect(loaded.refreshToken == Secret("R1"))
        guard loaded.accessToken != nil else { return nil }
        #expect(loaded.issuedAt <= clock.wall)
        let now = ContinuousClock.now
        let token = try #require(loaded.accessToken(at: Moment(now: now, wallClock: clock.wall) { 0 }))
        return now.duration(to: token.expiresAt).components.seconds
    }

    @Test("passed time is taken off a record's lifetime, and a second for rounding")
    func passing() async throws {
        #expect(try await seconds { _ in } == 3599)
        #expect(try await seconds { $0.pass(1000) } == 2599)
        #expect(try await seconds { $0.pass(3598) } == 1)
        #expect(try await seconds { $0.pass(3599) } == nil)
        #expect(try await seconds { $0.pass(1_000_000) } == nil)
        #expect(try await seconds(life: 1) { _ in } == nil)
    }

    @Test("a wall clock set back makes no token younger")
    func setBack() async throws {
        for jump in [-60, -3600, -86_400, -1_000_000_000] as [Int64] {
            #expect(
                try await seconds {
                    $0.pass(1000)
                    $0.jumpWallClock(by: jump)
                } == 2599)
            #expect(
                try await seconds {
                    $0.pass(4200)
                    $0.jumpWallClock(by: jump)
                } == nil, "expired, and the clock back by \(jump) s")
        }
    }

    @Test("a wall clock set forward may cost a token its use, and never lengthens its life")
    func setForward() async throws {
        #expect(
            try await seconds {
                $0.pass(10)
                $0.jumpWallClock(by: 600)
            } == 2990)
        #expect(try await seconds { $0.jumpWallClock(by: 3600) } == nil)
    }

    @Test("across a restart of the machine the wall clock counts, if it was kept right and is")
    func reboot() async throws {
        #expect(try await seconds { $0.reboot(after: 100) } == 3499)
        #expect(try await seconds { $0.reboot(after: 3600) } == nil)
        #expect(try await seconds { $0.reboot(after: 100, isSynchronized: false) } == nil)
        #expect(try await seconds(clock: HeldClock(isSynchronized: false)) { $0.reboot(after: 100) } == nil)
        #expect(try await seconds { $0.reboot(after: -1) } == nil, "it says that the record is of the future")
    }

    @Test("where the system does not say which start of the machine it is, the wall clock must do")
    func unknownBoot() async throws {
        #expect(try await seconds(clock: HeldClock(boot: nil)) { $0.pass(100) } == 3499)
        #expect(try await seconds(clock: HeldClock(boot: nil, isSynchronized: false)) { $0.pass(100) } == nil)
    }

    @Test("a record that could be saved only later is as old as it is, also when the clock was set back meanwhile")
    func lateSave() async throws {
        let folder = try FileStoreFolder()
        let clock = HeldClock()
        let store = folder.store(lockPatience: .milliseconds(300), machine: clock.machine)
        let lease = try await folder.store().lease(client: "billing")
        #expect(await storeFault { try await store.save(FileStoreFolder.record(), client: "billing") }?.kind == .busy)
        await lease?.release()
        clock.pass(1800)
        clock.jumpWallClock(by: -1200)
        try await store.save(FileStoreFolder.record(), client: "billing")
        let loaded = try #require(try await folder.store(machine: clock.machine).load(client: "billing"))
        #expect(loaded.expiresAt - clock.wall == 3600 - 1801)
    }

    @Test("absurd times in a record file are no trap and make no eternal token")
    func absurd() async throws {
        for (issued, expires) in [
            (Int64.min, Int64.max), (.max, .min), (.min, .min), (0, .max), (.min, HeldClock.begin + 1), (.max, .max),
        ] {
            let folder = try FileStoreFolder()
            var record = FileStoreFolder.record()
            record.issuedAt = issued
            record.expiresAt = expires
            let clock = HeldClock()
            try await folder.store(machine: clock.machine).save(record, client: "billing")
            let loaded = try await folder.store(machine: clock.machine).load(client: "billing")
            #expect(loaded?.refreshToken == record.refreshToken)
            if let token = loaded?.accessToken(at: Moment(now: .now, wallClock: clock.wall) { 0 }) {
                #expect(ContinuousClock.now.duration(to: token.expiresAt) <= TokenPolicy.maxLifetime)
            }
        }
    }

    @Test("the real clocks know this start of the machine")
    func realClocks() {
        let (one, other) = (FileStoreMachine.system.stamp(), FileStoreMachine.system.stamp())
        #expect(one.boot?.count == 36)
        #expect(one.boot == other.boot)
        #expect((1...30).contains(one.seconds(until: other) ?? 0))
    }
}
