import Foundation
import TestSupport
import Testing

@testable import Heimdallr

/// A client and its records on a real disk.
@Suite struct `A client with a file store` {
    private static func rotating(life: Int = 3600) throws -> TokenEndpoint {
        try TokenEndpoint { _, number in
            .token("T\(number + 1)", expiresIn: "\(life)", refreshToken: "R\(number + 1)")
        }
    }

    /// The run of a process: gets a token, does `work`, ends.
    private func run(
        _ endpoint: TokenEndpoint, _ store: OAuthAccessTokenFileStore,
        grant: any OAuthAuthorizationGrant = ClientCredentialsGrant(),
        _ work: (Heimdallr, AccessToken) async throws -> Void = { _, _ in }
    ) async throws {
        let client = try makeClient(endpoint, grant: grant, store: store)
        client.start()
        try await work(client, try await client.accessToken(waiting: .seconds(20)))
        client.shutdown()
    }

    private func store(_ folder: FileStoreFolder) -> OAuthAccessTokenFileStore {
        OAuthAccessTokenFileStore(directory: folder.directory, key: folder.key, lockPatience: .seconds(5))
    }

    @Test("on start the token of the last run is used while it is valid, and nothing is asked")
    func nextRun() async throws {
        let folder = try FileStoreFolder()
        let endpoint = try Self.rotating()
        try await run(endpoint, store(folder)) { _, token in #expect(token.value == Secret("T1")) }
        for _ in 0..<3 {
            try await run(endpoint, store(folder)) { client, token in
                #expect(token.value == Secret("T1"))
                #expect(token.refreshToken == Secret("R1"))
                #expect((client.status().expiresIn ?? .zero) <= .seconds(3599))
            }
        }
        #expect(endpoint.requests.count == 1)
    }

    @Test("on start after its expiry the stored refresh token is spent, the last one of a rotation")
    func nextRefresh() async throws {
        let folder = try FileStoreFolder()
        let endpoint = try Self.rotating(life: 1)
        for _ in 0..<3 { try await run(endpoint, store(folder)) }
        #expect(endpoint.requests.map { $0["refresh_token"] } == [nil, "R1", "R2"])
    }

    @Test(
        "while the record is damaged the seed is tried once, the status says what to remove, and a mended record serves",
        arguments: [TokenEndpointAnswer.error("invalid_grant"), .error("invalid_request"), .status(400)])
    func damagedRecord(refusal: TokenEndpointAnswer) async throws {
        let folder = try FileStoreFolder()
        let endpoint = try TokenEndpoint { request, _ in
            request["refresh_token"] == "R1" ? .token("T2", refreshToken: "R2") : refusal
        }
        try await store(folder).save(FileStoreFolder.record(3, refreshToken: "R1"), client: recordName(endpoint.url))
        let good = try folder.bytes()
        var damaged = good
        damaged[damaged.count / 2] ^= 1
        try folder.overwrite(with: damaged)
        let clock = ManualClock(chance: 0.5)
        let client = try makeClient(
            endpoint, grant: RefreshTokenGrant(refreshToken: Secret("R0")), store: store(folder), clock: clock.clock)
        client.start()
        try await eventually("the refusal") { client.status().state == .needsAuthentication }
        for _ in 0..<20 {
            try await eventually("it sleeps until the next try") { clock.sleepers > 0 }
            clock.advance(by: .seconds(60))
        }
        #expect(endpoint.requests.map { $0["refresh_token"] } == ["R0"])
        let fault = try #require(client.status().storeFault)
        #expect(fault.contains(folder.path()) && fault.contains("remove it"))
        #expect(try folder.bytes() == damaged)
        try folder.overwrite(with: good)
        try await eventually("a token by the mended record") {
            clock.advance(by: .seconds(1))
            return client.hasAccessToken
        }
        #expect(client.status().storeFault == nil)
        client.shutdown()
    }

    @Test("forgotten tokens stay forgotten in the next run")
    func cleared() async throws {
        let folder = try FileStoreFolder()
        let endpoint = try Self.rotating()
        try await run(endpoint, store(folder)) { client, _ in try await client.clearAccessToken() }
        try await run(endpoint, store(folder)) { _, token in #expect(token.value == Secret("T2")) }
        #expect(endpoint.requests.map { $0["refresh_token"] } == [nil, nil])
    }

    @Test(
        "a store that fails: the token serves from memory, the status says why, and it is saved when the disk is well",
        .enabled(SmallDisk.unavailable, SmallDisk.isAvailable))
    func fullDisk() async throws {
        try await SmallDisk.use { folder in
            let endpoint = try Self.rotating()
            let store = store(folder)
            try await store.prepare()
            let filler = try SmallDisk.fill(folder)
            try await run(endpoint, store) { client, token in
                #expect(token.value == Secret("T1"))
                let status = client.status()
                #expect(status.state == .ready)
                #expect(status.storeFault?.contains("No space left on device") == true)
                try SmallDisk.clear(filler)
                try await eventually("the record is saved") { client.status().storeFault == nil }
            }
            #expect(try await store.load(client: recordName(endpoint.url))?.refreshToken == Secret("R1"))
            #expect(endpoint.requests.count == 1)
        }
    }

    @Test("a record that can't be read: said in the status, left as it is, and the client goes on from memory")
    func unreadable() async throws {
        let folder = try FileStoreFolder()
        let endpoint = try Self.rotating()
        try await run(endpoint, store(folder))
        let bytes = try folder.bytes()
        let other = OAuthAccessTokenFileStore(directory: folder.directory, key: try FileStoreFolder.key(2))
        try await run(endpoint, other) { client, token in
            #expect(token.value == Secret("T2"))
            #expect(client.status().storeFault?.contains("sealed with another key") == true)
        }
        #expect(try folder.bytes() == bytes)
        try await run(endpoint, store(folder)) { _, token in #expect(token.value == Secret("T1")) }
    }

    @Test("while another process has the record, nothing is asked; then what it stored is taken over")
    func busy() async throws {
        let folder = try FileStoreFolder()
        let endpoint = try Self.rotating()
        let theirs = store(folder)
        let ours = OAuthAccessTokenFileStore(
            directory: folder.directory, key: folder.key, lockPatience: .milliseconds(50))
        let lease = try await theirs.lease(client: recordName(endpoint.url))
        let client = try makeClient(endpoint, store: ours)
        client.start()
        try await eventually("the status says so") {
            guard case .tokenEndpointUnavailable(.store(let fault), _) = client.status().lastError else { return false }
            return fault.kind == .busy
        }
        let now = FileStoreMachine.system.stamp().wall
        try await theirs.save(
            TokenRecord(
                revision: 4, accessToken: Secret("theirs"), issuedAt: now, expiresAt: now + 600,
                refreshToken: Secret("R")), client: recordName(endpoint.url))
        await lease?.release()
        try await eventually("it is taken over") { client.currentToken()?.value == Secret("theirs") }
        #expect(endpoint.requests.isEmpty)
        client.shutdown()
    }

    @Test("an ordinary end waits for the refresh that is under way, and keeps what it brings")
    func drained() async throws {
        let folder = try FileStoreFolder()
        let (asked, gate) = (Gate(), Gate())
        let endpoint = try TokenEndpoint { _, number in
            if number == 1 {
                asked.open()
                gate.wait()
            }
            return .token("T\(number + 1)", refreshToken: "R\(number + 1)")
        }
        let client = try makeClient(endpoint, store: store(folder))
        client.start()
        _ = try await client.accessToken(waiting: .seconds(20))
        client.invalidateAccessToken()
        let waiter = Task { try await client.accessToken(waiting: .seconds(60)) }
        try await offPool { asked.wait() }
        let end = Task {
            await client.drain(within: .seconds(60))
            client.shutdown()
        }
        gate.open()
        await end.value
        #expect(try await store(folder).load(client: recordName(endpoint.url))?.refreshToken == Secret("R2"))
        #expect(try await waiter.value.value == Secret("T2"))
    }

    @Test("an end is held up by nothing that could not be lost, and by nothing for longer than it was told")
    func drainedAtOnce() async throws {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, number in
            if number > 0 { gate.wait() }
            return .token("T\(number + 1)", refreshToken: number == 0 ? nil : "R")
        }
        defer { gate.open() }
        let client = try makeClient(endpoint)
        client.start()
        _ = try await client.accessToken(waiting: .seconds(20))
        client.invalidateAccessToken()
        let waiter = Task { try await client.accessToken(waiting: .seconds(60)) }
        _ = try await endpoint.requests(2)
        await client.drain(within: .seconds(1_000_000))
        client.shutdown()
        await #expect(throws: HeimdallrError.stopped) { try await waiter.value }
    }

    @Test(
        "a record that could not be saved gets a last chance at the end",
        .enabled(SmallDisk.unavailable, SmallDisk.isAvailable))
    func lastChance() async throws {
        try await SmallDisk.use { folder in
            let endpoint = try Self.rotating()
            let store = store(folder)
            try await store.prepare()
            let filler = try SmallDisk.fill(folder)
            // Time stands still, so that no retry is due.
            let client = try makeClient(endpoint, store: store, clock: ManualClock().clock)
            client.start()
            _ = try await client.accessToken(waiting: .seconds(20))
            #expect(client.status().storeFault != nil)
            try SmallDisk.clear(filler)
            // Otherwise `drain` waits for the fetch, and its clock stands still.
            try await eventually("the fetch is over") { !client.isSpending }
            await client.drain(within: .seconds(20))
            #expect(client.status().storeFault == nil)
            #expect(try await store.load(client: recordName(endpoint.url))?.refreshToken == Secret("R1"))
            client.shutdown()
        }
    }

    @Test("a store that can be read only later: a client that needs a person takes up its record then, without one")
    func lateStore() async throws {
        let folder = try FileStoreFolder()
        let endpoint = try Self.rotating()
        try await run(endpoint, store(folder))
        Disk.chmod(folder.directory, 0o755)
        let client = try makeClient(endpoint, grant: InteractiveGrant(), store: store(folder))
        client.start()
        try await eventually("it says why") {
            let status = client.status()
            return status.state == .needsAuthentication && status.storeFault?.contains("chmod 700") == true
        }
        Disk.chmod(folder.directory, 0o700)
        try await eventually("the record is taken up") { client.currentToken()?.value == Secret("T1") }
        #expect(client.status().storeFault == nil)
        #expect(client.status().lastError == nil)
        #expect(endpoint.requests.count == 1)
        client.shutdown()
    }

    @Test("a refresh token that was handed in, and spent long ago, is not spent again because a disk is away")
    func lateStoreWithSeed() async throws {
        let folder = try FileStoreFolder()
        let endpoint = try Self.rotating(life: 1)
        let grant = RefreshTokenGrant(refreshToken: Secret("seed"))
        try await run(endpoint, store(folder), grant: grant)
        Disk.chmod(folder.directory, 0o755)
        let client = try makeClient(endpoint, grant: grant, store: store(folder))
        client.start()
        try await eventually("it says why") {
            guard case .tokenEndpointUnavailable(.store, _) = client.status().lastError else { return false }
            return client.status().storeFault != nil
        }
        Disk.chmod(folder.directory, 0o700)
        try await eventually("it goes on where it was") { client.hasAccessToken }
        #expect(endpoint.requests.map { $0["refresh_token"] } == ["seed", "R1"])
        client.shutdown()
    }
}
