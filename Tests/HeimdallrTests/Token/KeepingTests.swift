import Heimdallr
import Synchronization
import TestSupport
import Testing

/// A token that is kept, over real sockets; only time is moved by hand.
@Suite struct `A kept token` {
    @Test("a client that is started fetches a token before any caller")
    func warmStart() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let client = try makeClient(endpoint)
        client.start()
        try await eventually("a token") { client.hasAccessToken }
        #expect(client.currentToken()?.value == Secret("T1"))
        #expect(endpoint.requests.count == 1)
    }

    @Test("[34] nobody waits for a background refresh: the old token serves until the new one is there")
    func background() async throws {
        let endpoint = try TokenEndpoint([.token("T1"), .token("T2", delay: .milliseconds(300))])
        let clock = ManualClock()
        let client = try makeClient(endpoint, clock: clock.clock)
        let old = try await client.accessToken()
        clock.advance(by: .seconds(3600 - 20))
        _ = try await endpoint.requests(2)
        #expect(client.currentToken() == old)
        #expect(try await client.accessToken() == old)
        try await eventually("the new token") { client.currentToken()?.value == Secret("T2") }
        #expect(client.currentToken()?.generation != old.generation)
    }

    @Test("events come in order to every reader, and name what happened")
    func events() async throws {
        let endpoint = try TokenEndpoint([
            .token("T1", refreshToken: "R1"), .status(500), .token("T2"), .error("invalid_grant"),
        ])
        let clock = ManualClock(chance: 0.5)
        let client = try makeClient(endpoint, clock: clock.clock)
        let readers = [client.events(), client.events()].map { stream in
            Task { await stream.reduce(into: []) { $0.append($1) } }
        }
        _ = try await client.accessToken()
        client.invalidateAccessToken()
        clock.advance(by: .seconds(10))
        let waiter = Task { try await client.accessToken(waiting: .seconds(60)) }
        _ = try await endpoint.requests(2)
        try await eventually("a failure") { client.status().lastError != nil }
        clock.advance(by: .seconds(10))
        _ = try await waiter.value
        client.shutdown()
        for reader in readers {
            let events = await reader.value
            #expect(events.map(\.name) == ["token_acquired", "token_lost", "token_failed", "token_refreshed"])
            #expect(events.allSatisfy { $0.client == "billing" })
        }
    }

    @Test("the status says how a client is, in words and without secrets")
    func status() async throws {
        let endpoint = try TokenEndpoint([
            .token("secret-T1", refreshToken: "secret-R1"),
            .error("invalid_client", status: 401, description: "no such client: secret-R1"),
        ])
        let clock = ManualClock(chance: 0.5)
        let client = try makeClient(endpoint, clock: clock.clock)
        #expect(client.status().state == .starting)
        _ = try await client.accessToken()
        clock.advance(by: .seconds(3000))
        var status = client.status()
        #expect(status.state == .ready)
        #expect(status.expiresIn == .seconds(600))
        #expect(status.hasRefreshToken)
        #expect(status.sinceLastSuccess == .seconds(3000))
        #expect(status.lastError == nil)
        clock.advance(by: .seconds(600))
        _ = try await client.refusal()
        clock.advance(by: .seconds(2))
        status = client.status()
        #expect(status.state == .backingOff)
        #expect(status.lastError?.description.contains("invalid_client: no such client: <redacted>") == true)
        #expect(status.sinceLastError == .seconds(2))
        #expect(status.nextAttemptIn == .seconds(3))
        #expect(!"\(status)".contains("secret"))
    }

    @Test("token requests are reported, each once")
    func reports() async throws {
        let endpoint = try TokenEndpoint([.token("T1", refreshToken: "R1"), .error("invalid_client")])
        let reports = Mutex<[TokenRequestReport]>([])
        var configuration = HeimdallrConfiguration(tokenEndpoint: endpoint.url)
        configuration.allowPlaintext = true
        let clock = ManualClock()
        let client = try Heimdallr(
            name: "billing", configuration: configuration,
            credentials: OAuthClientSecretCredentials(identifier: "app"), httpClient: LoopbackHTTPClient(),
            clock: clock.clock, onTokenRequest: { report in reports.withLock { $0.append(report) } })
        _ = try await client.accessToken()
        clock.advance(by: .seconds(4000))
        _ = try await client.refusal()
        let seen = reports.withLock { $0 }
        #expect(seen.map(\.grantType) == ["client_credentials", "refresh_token"])
        #expect(seen.map(\.result) == [.success, .refused])
        #expect(seen.allSatisfy { $0.client == "billing" })
    }

    @Test("[19] the token waits for its record")
    func durable() async throws {
        let endpoint = try TokenEndpoint([.token("T1", refreshToken: "R1")])
        let store = RecordingStore()
        await store.holdSaves()
        let client = try makeClient(endpoint, store: store)
        let waiter = Task { try await client.accessToken() }
        try await eventually("the save waits") { await store.isHeld }
        #expect(client.currentToken() == nil)
        await store.releaseSaves()
        #expect(try await waiter.value.value == Secret("T1"))
        #expect(await store.records["billing"]?.refreshToken == Secret("R1"))
    }

    @Test("a store that fails is said, the token serves, and saving is tried again until it works")
    func failingStore() async throws {
        let endpoint = try TokenEndpoint([.token("T1", refreshToken: "R1")])
        let store = RecordingStore()
        await store.failSaves(TokenStoreError("the disk is full"))
        let clock = ManualClock()
        let client = try makeClient(endpoint, store: store, clock: clock.clock)
        _ = try await client.accessToken()
        #expect(client.status().storeFault == "the disk is full")
        clock.advance(by: .seconds(5))
        try await eventually("a second try") { await store.saves.count == 2 }
        await store.failSaves(nil)
        try await eventually("the record on disk") {
            clock.advance(by: .seconds(40))
            return await store.records["billing"] != nil
        }
        try await eventually("no fault") { client.status().storeFault == nil }
    }

    @Test("the wall clock may jump: deadlines do not move, and nothing is asked", arguments: [3600, -3600] as [Int64])
    func wallClockJumps(seconds: Int64) async throws {
        let endpoint = try TokenEndpoint([.token("T1"), .token("T2")])
        let clock = ManualClock()
        let client = try makeClient(endpoint, clock: clock.clock)
        _ = try await client.accessToken()
        clock.jumpWallClock(by: seconds)
        clock.advance(by: .seconds(3500))
        #expect(client.currentToken()?.value == Secret("T1"))
        #expect(endpoint.requests.count == 1)
        clock.advance(by: .seconds(100))
        #expect(client.currentToken()?.value != Secret("T1"))
    }
}
