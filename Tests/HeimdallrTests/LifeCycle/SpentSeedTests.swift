import Synchronization
import TestSupport
import Testing

@testable import Heimdallr

/// A refresh token in the configuration that the server has replaced. A second use may revoke its successors.
@Suite struct `A configured refresh token that was exchanged` {
    private let seed = Recorder<String>()
    private let clock = ManualClock()
    /// Error for every refresh token but configured ones, whose names begin with S.
    private let endpoint: TokenEndpoint

    init() throws {
        seed.append("S1")
        endpoint = try TokenEndpoint { request, number in
            let token = request["refresh_token"] ?? ""
            if token.hasPrefix("S") { return .token("T\(number)", refreshToken: "R\(number)") }
            return .error(request["scope"] ?? "invalid_grant")
        }
    }

    private func client(_ store: any OAuthAccessTokenStore, refusal: String = "invalid_grant") throws -> Heimdallr {
        let grant = RefreshTokenGrant(refreshToken: SecretClosureProvider { [seed] in Secret(seed.all.last ?? "") })
        return try makeClient(endpoint, grant: grant, store: store, clock: clock.clock) { $0.scope = [refusal] }
    }

    private var sent: [String] { endpoint.requests.map { $0["refresh_token"] ?? "" } }

    /// Moves the time until the condition holds.
    private func pass(_ what: String, until condition: @escaping @Sendable () async -> Bool) async throws {
        try await eventually(what) { [clock] in
            clock.advance(by: .seconds(1))
            return await condition()
        }
    }

    /// Lets the client's refresh token be refused until a new one is needed, and long after.
    private func expectEnd(of client: Heimdallr) async throws {
        client.refreshNow()
        try await pass("the client needs a new one") { client.status().state == .needsAuthentication }
        let before = sent.count
        for _ in 0..<20 { clock.advance(by: .seconds(60)) }
        try await pass("further attempts") {
            client.refreshNow()
            return client.status().cause != nil && !client.isAsking
        }
        #expect(sent.filter { $0 == "S1" }.count == 1, "\(sent)")
        #expect(!sent.isEmpty && before <= sent.count)
    }

    @Test(arguments: ["invalid_grant", "invalid_scope", "tea_break"])
    func `a configured refresh token is not sent again after its successor was refused`(refusal: String) async throws {
        let client = try client(RecordingStore(), refusal: refusal)
        defer { client.shutdown() }
        #expect(try await client.accessToken().value == Secret("T0"))
        client.invalidateAccessToken()
        try await expectEnd(of: client)
        #expect(client.awaitsPerson)
        // A changed one is new.
        seed.append("S2")
        client.credentialsChanged()
        try await pass("the new one is exchanged") { client.hasAccessToken }
        #expect(sent.last == "S2")
        client.invalidateAccessToken()
        // The former one in an old configuration is not new.
        seed.append("S1")
        client.credentialsChanged()
        try await expectEnd(of: client)
    }

    @Test(arguments: ["invalid_grant", "invalid_scope"])
    func `a configured refresh token that was exchanged is not sent again by a later process`(refusal: String)
        async throws
    {
        let folder = try FileStoreFolder()
        let first = try client(folder.store(), refusal: refusal)
        _ = try await first.accessToken()
        first.shutdown()
        for _ in 0..<2 {
            clock.advance(by: .seconds(7200))
            let next = try client(folder.store(), refusal: refusal)
            next.start()
            try await expectEnd(of: next)
            await next.drain(within: .seconds(30))
            next.shutdown()
        }
    }

    @Test func `a configured refresh token that was exchanged is not sent again after a sign-out`() async throws {
        let store = RecordingStore()
        let first = try client(store)
        _ = try await first.accessToken()
        #expect(await first.logOut(locally: true).isComplete)
        try await expectEnd(of: first)
        first.shutdown()
        let next = try client(store)
        defer { next.shutdown() }
        next.start()
        try await expectEnd(of: next)
        #expect(sent == ["S1"])
        let cause = try #require(next.status().needsAuthenticationBecause)
        #expect(cause.contains("the configured refresh token was used before"), "\(cause)")
    }

    @Test func `an exchanged configured refresh token is not sent by a replica that learns of the successor`() {
        var seeds = SpentSeeds()
        seeds.note(Secret("S1"))
        var record = TokenRecord(revision: 5, accessToken: nil, issuedAt: 0, expiresAt: 0, refreshToken: Secret("R1"))
        record.spentSeeds = seeds
        var cycle = DrivenLifeCycle(needs: .freshSeed)
        cycle.start()
        cycle.answer(.adopted(record))
        #expect(cycle.life.grant.spentSeeds == seeds)
    }

    @Test func `a configured refresh token is sent again if the server did not replace it`() async throws {
        let endpoint = try TokenEndpoint { _, number in .token("T\(number)") }
        let grant = RefreshTokenGrant(refreshToken: Secret("S1"))
        let client = try makeClient(endpoint, grant: grant, clock: clock.clock)
        defer { client.shutdown() }
        _ = try await client.accessToken()
        client.invalidateAccessToken()
        client.refreshNow()
        try await pass("the next token") { client.hasAccessToken }
        #expect(endpoint.requests.map { $0["refresh_token"] } == ["S1", "S1"])
    }

    @Test func `at most eight exchanged refresh tokens are known, of which the newest stay`() {
        var seeds = SpentSeeds()
        for number in 0..<20 { seeds.note(Secret("S\(number)")) }
        for number in 0..<20 { #expect(seeds.contains(Secret("S\(number)")) == (number >= 12)) }
        #expect(SpentSeeds(text: seeds.text) == seeds)
        #expect(!seeds.text.contains("S19"))
    }
}
