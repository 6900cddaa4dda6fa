import HeimdallrCurl
import Synchronization
import TestSupport
import Testing

@testable import Heimdallr
@testable import PostgresStore

/// A lease counts from the moment when its request goes out, not from the beginning of the wait for a slot.
@Suite struct `The lease of a request that waits for its slot` {
    /// A clock of one process, ahead of the others.
    private final class Ahead: Sendable {
        private let passed = Mutex(Duration.zero)

        func advance(by time: Duration) { passed.withLock { $0 += time } }

        var clock: HeimdallrClock {
            var clock = HeimdallrClock.system
            clock.now = { ContinuousClock.now + self.passed.withLock { $0 } }
            return clock
        }
    }

    /// A client of one process whose only slot is taken, with the lease of an expired record.
    private struct Waiting {
        let database: Postgres
        let ahead = Ahead()
        let endpoint: TokenEndpoint
        let limiter: TokenRequestLimiter
        let slot: TokenRequestLimiter.Slot
        let client: Heimdallr
        let name: String
        var events: AsyncStream<HeimdallrEvent>.AsyncIterator

        init() async throws {
            database = try await Postgres()
            endpoint = try TokenEndpoint([.token("answered", refreshToken: "R2")])
            limiter = TokenRequestLimiter(.one)
            slot = try #require(await limiter.acquire())
            var configuration = HeimdallrConfiguration(tokenEndpoint: endpoint.url)
            configuration.allowPlaintext = true
            configuration.authorizationEndpoint = "http://127.0.0.1:9/authorize"
            let credentials = OAuthClientSecretCredentials(identifier: "id", secret: Secret("s"))
            let grant = InteractiveGrant(.browser)
            name =
                RecordName(client: "billing", configuration: configuration, credentials: credentials, grant: grant)
                .description
            let store = try await database.store(clock: ahead.clock)
            try await store.save(record(1, "R1", age: 7200), client: name)
            client = try Heimdallr(
                name: "billing", configuration: configuration, credentials: credentials, grant: grant,
                httpClient: try CurlHTTPClient(), store: store, limiter: limiter)
            events = client.events().makeAsyncIterator()
            client.start()
            let (database, name) = (database, name)
            try await eventually("it has the lease") { try await database.holds(name) }
        }

        /// Past the time in which a request may begin.
        func outlast() { ahead.advance(by: .seconds(11)) }
    }

    @Test func `a lease that ends while its request waits is renewed, and the request goes out`() async throws {
        var waiting = try await Waiting()
        waiting.outlast()
        waiting.limiter.release(waiting.slot)
        let event = await waiting.events.next()
        #expect(event?.name == "token_refreshed")
        #expect(waiting.client.currentToken()?.value == Secret("answered"))
        #expect(waiting.endpoint.requests.map { $0["refresh_token"] } == ["R1"])
        let (database, name) = (waiting.database, waiting.name)
        #expect(try await !database.holds(name), "the save has taken the mark away")
    }

    @Test func `a record that another process has saved meanwhile is used, and nothing is sent`() async throws {
        var waiting = try await Waiting()
        waiting.outlast()
        try await waiting.database.change("holder = NULL, held_until = NULL", waiting.name)
        let other = try await waiting.database.store()
        let lease = try await other.lease(client: waiting.name)
        try await other.save(record(2, "R2"), client: waiting.name)
        await lease?.release()
        waiting.limiter.release(waiting.slot)
        #expect(await waiting.events.next()?.name == "token_acquired")
        #expect(waiting.client.currentToken()?.value == Secret("T2"))
        #expect(waiting.endpoint.requests.isEmpty)
    }

    @Test func `a lease that another process has taken is not renewed`() async throws {
        let (database, ahead) = (try await Postgres(), Ahead())
        let store = try await database.store(clock: ahead.clock)
        try await store.save(record(1, "R1"), client: "billing")
        let lease = try #require(try await store.lease(client: "billing"))
        ahead.advance(by: .seconds(11))
        #expect(await lease.isHeld())
        ahead.advance(by: .seconds(11))
        try await database.change("holder = 'another'")
        #expect(await !lease.isHeld())
        try await database.change("holder = NULL, held_until = NULL, revision = 2")
        #expect(await !lease.isHeld())
        await lease.release()
        #expect(await !lease.isHeld())
        #expect(try await !database.holds("billing"))
    }
}

extension Postgres {
    /// Whether a process has the lease of a client.
    fileprivate func holds(_ client: String) async throws -> Bool {
        try await server.sql(
            "SELECT count(holder) FROM heimdallr.token WHERE space = '\(space)' AND client = '\(client)'") == "1\n"
    }
}
