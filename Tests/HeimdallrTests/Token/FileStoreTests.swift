import Cryptography
import Foundation
import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `The file store` {
    private static let full = TokenRecord(
        revision: 42, accessToken: Secret(String(repeating: "t", count: 16 * 1024)), issuedAt: HeldClock.begin,
        expiresAt: HeldClock.begin + 3600, refreshToken: Secret("r=+/ \u{e9}"), scope: ["a", "b c", ""],
        extra: [
            "username": .string("gu\u{e9}st"), "n": .number("1e5"), "b": .bool(true), "f": .bool(false), "z": .null,
            "list": .array([.string("x"), .array([]), .object(["k": .null])]), "": .object([:]),
        ], signIn: SignIn(idToken: Secret(String(repeating: "i", count: 4000)), name: "ad\u{e9}"),
        refreshTokenLife: TokenRecord.RefreshTokenLife(issuedAt: -1, expiresAt: .max), dpopKey: Secret("key"),
        keyThumbprint: "thumb")

    @Test("a record that was saved comes back, in another process too")
    func roundTrip() async throws {
        let folder = try FileStoreFolder()
        let clock = HeldClock()
        for record in [Self.full, FileStoreFolder.record(1), FileStoreFolder.record(7, refreshToken: nil)] {
            try await folder.store(machine: clock.machine).save(record, client: "c\(record.revision)")
            var expected = record
            expected.issuedAt -= 1
            expected.expiresAt -= 1
            let loaded = try await folder.store(machine: clock.machine).load(client: "c\(record.revision)")
            #expect(loaded == expected, "a second is taken off for what the clocks round")
        }
        #expect(try await folder.store().load(client: "nobody") == nil)
    }

    @Test(
        "a record of an earlier layout is read: from before there were logins, and before there were bound tokens",
        arguments: [(UInt8(1), 4), (2, 2)])
    func earlierFormat(format: UInt8, added: Int) async throws {
        let folder = try FileStoreFolder()
        let record = FileStoreFolder.record()
        try await folder.store().save(record, client: "billing")
        let key = try SealingKey(SecretBytes([UInt8](repeating: 1, count: 32)))
        let context = Array("heimdallr-proxy token record of billing".utf8)
        let plain = try SealedBytes.open(try folder.bytes(), format: 3, context: context, key: key)
        // Fields added since are marked as absent.
        let bytes = plain.withSpan { span in span.indices.map { span[$0] }.dropLast(added) }
        try folder.overwrite(
            with: try SealedBytes.seal(SecretBytes(Array(bytes)), format: format, context: context, key: key))
        #expect(try await folder.store().load(client: "billing")?.refreshToken == record.refreshToken)
    }

    @Test("the directory is 0700, files are 0600, whatever the creation mask says")
    func modes() async throws {
        let folder = try FileStoreFolder()
        let store = folder.store()
        try await store.save(FileStoreFolder.record(), client: "billing")
        let manager = FileManager.default
        func mode(_ path: String) throws -> Int? {
            (try manager.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue
        }
        #expect(try mode(folder.directory) == 0o700)
        let names = try manager.contentsOfDirectory(atPath: folder.directory).sorted()
        #expect(names == ["billing.lock", "billing.token"])
        for name in names { #expect(try mode("\(folder.directory)/\(name)") == 0o600) }
    }

    @Test("a record's file shows nothing of its contents")
    func sealed() async throws {
        let folder = try FileStoreFolder()
        try await folder.store().save(Self.full, client: "billing")
        let text = String(decoding: try folder.bytes(), as: UTF8.self)
        for part in ["ttt", "r=+/", "username", "billing"] { #expect(!text.contains(part)) }
    }

    @Test(
        "file names are made safe, and never the same for two clients",
        arguments: [
            ("billing", "billing"), ("A-b_9", "A-b_9"), ("../../etc/passwd", "%2E%2E%2F%2E%2E%2Fetc%2Fpasswd"),
            (".", "%2E"), ("a.token", "a%2Etoken"), ("a%2Etoken", "a%252Etoken"), ("\u{e9}", "%C3%A9"),
            ("a\0b", "a%00b"), ("a b\n", "a%20b%0A"),
        ])
    func names(client: String, file: String) async throws {
        #expect(FileStoreClient.file(for: client) == file)
        let folder = try FileStoreFolder()
        try await folder.store().save(FileStoreFolder.record(), client: client)
        #expect(FileManager.default.fileExists(atPath: folder.path(file)))
    }

    @Test("a client's name that makes no file name is refused")
    func longNames() async throws {
        let folder = try FileStoreFolder()
        for name in ["", String(repeating: "n", count: 241), String(repeating: "\u{e9}", count: 41)] {
            let fault = await storeFault { try await folder.store().save(FileStoreFolder.record(), client: name) }
            #expect(fault?.kind == .misconfigured)
        }
        try await folder.store().save(FileStoreFolder.record(), client: String(repeating: "n", count: 240))
    }

    @Test("the retry of an old record does not replace what another process has stored since")
    func superseded() async throws {
        let folder = try FileStoreFolder()
        let clock = HeldClock()
        let (ours, theirs) = (folder.store(machine: clock.machine), folder.store(machine: clock.machine))
        try await ours.save(FileStoreFolder.record(5, refreshToken: "R5"), client: "billing")
        var late = FileStoreFolder.record(6, refreshToken: "R6")
        late.issuedAt += 10
        var later = FileStoreFolder.record(8, refreshToken: "R8")
        later.issuedAt += 20
        try await theirs.save(later, client: "billing")
        try await ours.save(late, client: "billing")
        #expect(try await ours.load(client: "billing")?.refreshToken == Secret("R8"))
        // One that knew nothing of the stored record, and is later by time, takes its place and its turn.
        var fresh = FileStoreFolder.record(1, refreshToken: "fresh")
        fresh.issuedAt += 30
        try await ours.save(fresh, client: "billing")
        let stored = try await ours.load(client: "billing")
        #expect(stored?.refreshToken == Secret("fresh"))
        #expect(stored?.revision == 9)
    }

    @Test("under a lease the later record wins, whatever its number")
    func underLease() async throws {
        let folder = try FileStoreFolder()
        let store = folder.store()
        try await store.save(FileStoreFolder.record(8), client: "billing")
        let lease = try await store.lease(client: "billing")
        try await store.save(FileStoreFolder.record(1, refreshToken: "R"), client: "billing")
        await lease?.release()
        #expect(try await store.load(client: "billing")?.refreshToken == Secret("R"))
        #expect(try await store.load(client: "billing")?.revision == 9)
    }

    @Test("the error of a busy lease names the lock")
    func leases() async throws {
        let folder = try FileStoreFolder()
        let (one, other) = (folder.store(), folder.store(lockPatience: .milliseconds(50)))
        let lease = try await one.lease(client: "billing")
        for work in [
            { _ = try await other.lease(client: "billing") },
            { try await other.save(FileStoreFolder.record(), client: "billing") },
            { try await other.remove(client: "billing") },
        ] as [() async throws -> Void] {
            let fault = await storeFault { try await work() }
            #expect(fault?.kind == .busy)
            #expect(fault?.description.contains("billing.lock") == true)
        }
        await lease?.release()
    }

    @Test("work that the disk does not finish costs its caller the patience and no more, and comes before what follows")
    func hangingDisk() async throws {
        let client = try FileStoreClient("billing")
        let (gate, late) = (Gate(), Recorder<Int>())
        let fault = await storeFault {
            try await client.perform(within: .milliseconds(30)) { gate.wait() }
        }
        #expect(fault?.description.contains("does not answer") == true)
        let abandoned = await storeFault {
            try await client.perform(within: .milliseconds(30)) { late.append(1) }
        }
        #expect(abandoned?.description.contains("does not answer") == true)
        gate.open()
        #expect(try await client.perform(within: .seconds(20)) { 7 } == 7)
        #expect(late.all.isEmpty, "nobody waited for it any more")
    }

    @Test func `a process that was stopped gives the disk time again`() async throws {
        let clock = ManualClock()
        var machine = HeldClock().machine
        machine.clock = clock.clock
        let queue = Recorder<@Sendable () -> Void>()
        machine.carryOut = { queue.append($0) }
        let client = try FileStoreClient("billing", on: machine)
        let reading = Task { try await client.perform(within: .seconds(10)) { 7 } }
        try await eventually("the alarm") { clock.sleepers == 1 && queue.all.count == 1 }
        clock.advance(by: .seconds(40))
        try await eventually("the second half") { clock.sleepers == 1 }
        queue.all.first?()
        #expect(try await reading.value == 7)
    }
}
