import TestSupport
import Testing

@testable import Heimdallr

/// `heimdallr-proxy store move` between two directories. Its command stands in the end-to-end tests.
@Suite struct `A move of records` {
    private let folders: [FileStoreFolder]
    private let name = "api-0123456789abcdef"

    init() throws { folders = try [FileStoreFolder(), FileStoreFolder()] }

    private func move(_ from: Int, _ to: Int, _ clients: String...) async throws -> [String] {
        let (source, target) = (folders[from].store(), folders[to].store())
        // The disk's thread may still hold the store of the move before.
        try await eventually("its lock") { (try? await source.prepareMove(alone: true)) != nil }
        try await eventually("its lock") { (try? await target.prepareMove(alone: false)) != nil }
        let lines = Recorder<String>()
        try await StoreMove(source, target, clients: clients).run { lines.append($0) }
        return lines.all
    }

    @Test func `a sign-out stays, though the records come back to the store that they left`() async throws {
        try await folders[0].store().save(FileStoreFolder.record(5), client: name)
        #expect(try await move(0, 1, "api") == ["api: moved", "1 moved"])
        #expect(try await move(0, 1, "api") == ["api: no record", "0 moved"])
        #expect(try await folders[1].store().load(client: name)?.refreshToken == Secret("R1"))
        try await folders[1].store().remove(client: name)
        #expect(try await move(1, 0, "api") == ["api: no record", "0 moved"])
        #expect(try await folders[0].store().load(client: name)?.holdsAnything == false)
        try await folders[0].store().prepare()
    }

    @Test func `known spent refresh tokens move to the other store, too, and add up`() async throws {
        var (record, other) = (FileStoreFolder.record(5), FileStoreFolder.record(1))
        record.spentSeeds.note(Secret("S1"))
        (record.accessToken, record.refreshToken) = (nil, nil)
        other.spentSeeds.note(Secret("S2"))
        (other.accessToken, other.refreshToken) = (nil, nil)
        try await folders[0].store().save(record, client: name)
        try await folders[1].store().save(other, client: name)
        #expect(try await move(0, 1, "api") == ["api: moved", "1 moved"])
        let moved = try #require(try await folders[1].store().load(client: name))
        #expect(moved.spentSeeds.contains(Secret("S1")) && moved.spentSeeds.contains(Secret("S2")))
    }

    @Test func `a move that was interrupted can be turned round`() async throws {
        let left = "left-0123456789abcdef"
        for name in [name, left] { try await folders[0].store().save(FileStoreFolder.record(5), client: name) }
        _ = try await move(0, 1, "api")
        #expect(try await move(1, 0, "api", "left") == ["left: no record", "api: moved", "1 moved"])
        for name in [name, left] {
            #expect(try await folders[0].store().load(client: name)?.refreshToken == Secret("R1"))
        }
    }

    @Test func `processes on one directory learn of a sign-out`() async throws {
        let store = folders[0].store()
        try await store.save(FileStoreFolder.record(5), client: name)
        #expect(try await store.names(of: "api") == [name])
        try await folders[0].store().remove(client: name)
        #expect(try await store.load(client: name)?.revision == 6)
        #expect(try await store.names(of: "api").isEmpty)
    }
}
