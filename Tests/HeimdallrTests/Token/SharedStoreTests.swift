import Heimdallr
import TestSupport
import Testing

/// Several processes with one record: which one may ask, which one takes over, and their work while the store is away. Each
/// client here stands for one process.
@Suite struct `A store that others use, too` {
    private func record(
        _ revision: UInt64, _ accessToken: String?, _ refreshToken: String?, expiresIn: Int64 = 3600
    ) -> TokenRecord {
        let now = HeimdallrClock.system.wallClock()
        return TokenRecord(
            revision: revision, accessToken: accessToken.map { Secret($0) }, issuedAt: now - 1,
            expiresAt: now + expiresIn, refreshToken: refreshToken.map { Secret($0) })
    }

    @Test("while the store is away, a refresh token is not sent; the token in use serves, and the status says why")
    func awayWithRefreshToken() async throws {
        let endpoint = try TokenEndpoint([.token("T2", refreshToken: "R2")])
        let store = SharedMemoryStore()
        store.put(record(1, "T1", "R1"))
        let client = try makeClient(endpoint, grant: InteractiveGrant(.browser), store: store) {
            $0.authorizationEndpoint = "http://127.0.0.1:9/authorize"
        }
        client.start()
        try await eventually("the stored token") { client.hasAccessToken }
        store.isAway = true
        client.refreshNow()
        try await eventually("a reason") { client.status().storeFault != nil }
        #expect(client.currentToken()?.value == Secret("T1"))
        client.invalidateAccessToken()
        let error = try await client.refusal()
        #expect("\(error)".contains("can't be reached"), "\(error)")
        #expect(endpoint.requests.isEmpty)
        #expect(!client.awaitsPerson)
        store.isAway = false
        try await eventually("no fault", within: .seconds(2)) { client.status().storeFault == nil }
        #expect(try await client.accessToken(waiting: .seconds(20)).value == Secret("T2"))
        #expect(endpoint.requests.map { $0["refresh_token"] } == ["R1"])
    }

    @Test("while the store is away, client credentials still get a token, and its record gives way to a later one")
    func awayWithClientCredentials() async throws {
        let endpoint = try TokenEndpoint([.token("T1"), .token("T2")])
        let store = SharedMemoryStore()
        store.isAway = true
        let client = try makeClient(endpoint, store: store)
        client.start()
        #expect(try await client.accessToken(waiting: .seconds(20)).value == Secret("T1"))
        try await eventually("a reason") { client.status().storeFault != nil }
        // Another process has saved a record, and all processes use that record.
        store.put(record(7, "S7", "R7"), tells: false)
        store.isAway = false
        try await eventually("the later record", within: .seconds(20)) {
            client.currentToken()?.value == Secret("S7")
        }
        #expect(client.status().storeFault == nil)
        #expect(store.record()?.revision == 7)
    }

    @Test("with a refresh token in the record, client credentials go without it while the store is away, and keep it")
    func awayWithBoth() async throws {
        let endpoint = try TokenEndpoint { request, _ in
            request["grant_type"] == "client_credentials" ? .token("C1") : .token("T2", refreshToken: "R2")
        }
        let store = SharedMemoryStore()
        store.put(record(1, nil, "R1"))
        let clock = ManualClock()
        clock.jumpWallClock(by: HeimdallrClock.system.wallClock() - 1_700_000_000)
        let client = try makeClient(endpoint, store: store, clock: clock.clock)
        try await eventually("the record") {
            client.start()
            return client.status().hasRefreshToken
        }
        try await eventually("T2") { client.currentToken()?.value == Secret("T2") }
        store.isAway = true
        client.invalidateAccessToken()
        let waiter = Task { try await client.accessToken(waiting: .seconds(60)) }
        try await eventually("a second request") {
            clock.advance(by: .seconds(1))
            return endpoint.requests.count >= 2
        }
        #expect(try await waiter.value.value == Secret("C1"))
        #expect(endpoint.requests.map { $0["grant_type"] } == ["refresh_token", "client_credentials"])
        #expect(client.status().hasRefreshToken)
    }

    @Test("nobody is called to sign in because the store is away at the start")
    func awayAtStart() async throws {
        let endpoint = try TokenEndpoint([.token("T2", refreshToken: "R2")])
        let store = SharedMemoryStore()
        store.put(record(3, "T1", "R1"))
        store.isAway = true
        let client = try makeClient(endpoint, grant: InteractiveGrant(.browser), store: store) {
            $0.authorizationEndpoint = "http://127.0.0.1:9/authorize"
        }
        var events = client.events().makeAsyncIterator()
        client.start()
        let error = try await client.refusal()
        #expect(error.retryAfter != nil, "it passes: \(error)")
        #expect(!client.awaitsPerson)
        store.isAway = false
        #expect(await events.next()?.name == "token_acquired")
        #expect(client.currentToken()?.value == Secret("T1"))
    }

    @Test("what another process has got is used as soon as it is told")
    func adoption() async throws {
        let endpoint = try TokenEndpoint([.token("T1", refreshToken: "R1"), .token("T2", refreshToken: "R2")])
        let store = SharedMemoryStore()
        let one = try makeClient(endpoint, store: store)
        let other = try makeClient(endpoint, store: store)
        one.start()
        try await eventually("a token") { one.hasAccessToken }
        other.start()
        try await eventually("the same one") { other.currentToken()?.value == Secret("T1") }
        // A refresh within a second of the last one is not begun.
        try await eventually("a refresh") {
            if endpoint.requests.count == 2 { return true }
            one.refreshNow()
            return false
        }
        try await eventually("the next one, at both") {
            one.currentToken()?.value == Secret("T2") && other.currentToken()?.value == Secret("T2")
        }
        #expect(endpoint.requests.count == 2)
    }

    @Test("a client that logs out at one process is logged out at the others")
    func logout() async throws {
        let endpoint = try TokenEndpoint([.status(500)])
        let store = SharedMemoryStore()
        store.put(record(1, "T1", "R1"))
        let clients = try (0..<3).map { _ in
            try makeClient(endpoint, grant: InteractiveGrant(.browser), store: store) {
                $0.authorizationEndpoint = "http://127.0.0.1:9/authorize"
            }
        }
        for client in clients { client.start() }
        try await eventually("the token everywhere") { clients.allSatisfy(\.hasAccessToken) }
        #expect(await clients[0].logOut(locally: true).isComplete)
        try await eventually("nobody has it") {
            clients.allSatisfy { !$0.hasAccessToken && !$0.status().hasRefreshToken }
                && clients.dropFirst().allSatisfy(\.awaitsPerson)
        }
    }

    @Test(
        "a lost answer is asked for again once, at once, while the store is held",
        arguments: [
            TokenEndpointAnswer(manner: .close),
            TokenEndpointAnswer(body: #"{"access_token":"X"}"#, manner: .cut(after: 9)),
        ])
    func lostAnswer(_ lost: TokenEndpointAnswer) async throws {
        let endpoint = try TokenEndpoint([lost, .token("T2", refreshToken: "R2")])
        let store = SharedMemoryStore()
        store.put(record(1, nil, "R1"))
        let client = try makeClient(endpoint, store: store)
        #expect(try await client.accessToken(waiting: .seconds(20)).value == Secret("T2"))
        let requests = endpoint.requests
        #expect(requests.map { $0["refresh_token"] } == ["R1", "R1"])
        #expect(
            requests[0].at.duration(to: requests[1].at) < .milliseconds(900), "without the wait between two requests")
    }

    @Test("an answer that is lost twice is a failure like any other")
    func lostTwice() async throws {
        let endpoint = try TokenEndpoint([TokenEndpointAnswer(manner: .close)])
        let store = SharedMemoryStore()
        store.put(record(1, nil, "R1"))
        let client = try makeClient(endpoint, store: store, clock: ManualClock().clock)
        _ = try await client.refusal()
        #expect(endpoint.requests.count == 2)
    }

    @Test("invalid_grant loses nothing that another process has got meanwhile")
    func invalidGrant() async throws {
        let store = SharedMemoryStore()
        store.put(record(1, nil, "R1"))
        let later = record(2, "T2", "R2")
        let endpoint = try TokenEndpoint { _, _ in
            // The lease was lost, and another process rotated.
            store.put(later, tells: false)
            return .error("invalid_grant")
        }
        let client = try makeClient(endpoint, grant: InteractiveGrant(.browser), store: store) {
            $0.authorizationEndpoint = "http://127.0.0.1:9/authorize"
        }
        #expect(try await client.accessToken(waiting: .seconds(20)).value == Secret("T2"))
        #expect(client.status().hasRefreshToken)
        #expect(store.record() == later)
        #expect(!client.awaitsPerson)
    }

    @Test("nothing is wiped on invalid_grant while the store can't be read again")
    func invalidGrantAway() async throws {
        let store = SharedMemoryStore()
        store.put(record(1, nil, "R1"))
        let endpoint = try TokenEndpoint { _, number in
            if number == 0 { store.isAway = true }
            return number == 0 ? .error("invalid_grant") : .token("T2", refreshToken: "R2")
        }
        let client = try makeClient(endpoint, grant: InteractiveGrant(.browser), store: store) {
            $0.authorizationEndpoint = "http://127.0.0.1:9/authorize"
        }
        _ = try await client.refusal(waiting: .seconds(1))
        #expect(client.status().hasRefreshToken)
        #expect(!client.awaitsPerson)
    }

    @Test("a record that can't be read here may have been read elsewhere: nothing is spent, until it can be")
    func unreadable() async throws {
        let endpoint = try TokenEndpoint([.token("T9", refreshToken: "R9")])
        let store = SharedMemoryStore()
        store.put(record(1, "T1", "R1"))
        let client = try makeClient(endpoint, store: store)
        client.start()
        try await eventually("the stored token") { client.hasAccessToken }
        store.isUnreadable = true
        store.put(record(2, "T2", "R2"))
        client.invalidateAccessToken()
        _ = try await client.refusal(waiting: .seconds(1))
        #expect(endpoint.requests.isEmpty)
        store.isUnreadable = false
        store.put(record(2, "T2", "R2"))
        try await eventually("what the other one got", within: .seconds(20)) {
            client.currentToken()?.value == Secret("T2")
        }
        #expect(endpoint.requests.isEmpty)
    }

    @Test("of two records with one number, the one in the store counts")
    func sameNumber() async throws {
        let store = SharedMemoryStore()
        store.put(record(2, nil, "R1"))
        let endpoint = try TokenEndpoint { request, number in
            if number == 0 { store.isAway = true }
            return .token("T\(number)", refreshToken: "next of \(request["refresh_token"] ?? "")")
        }
        let client = try makeClient(endpoint, store: store)
        #expect(try await client.accessToken(waiting: .seconds(20)).value == Secret("T0"))
        store.put(record(3, "S3", "R9"), tells: false)
        store.isAway = false
        try await eventually("the other's token", within: .seconds(20)) {
            client.currentToken()?.value == Secret("S3")
        }
        client.invalidateAccessToken()
        _ = try await client.accessToken(waiting: .seconds(20))
        #expect(endpoint.requests.map { $0["refresh_token"] } == ["R1", "R9"])
        #expect(store.record()?.refreshToken == Secret("next of R9"))
    }

    @Test("a record from before ours, that has come back, is not taken for news")
    func olderRecord() async throws {
        let endpoint = try TokenEndpoint([.token("T9", refreshToken: "R9")])
        let store = SharedMemoryStore()
        store.put(record(5, "T5", "R5"))
        let client = try makeClient(endpoint, store: store)
        client.start()
        try await eventually("the stored token") { client.hasAccessToken }
        let loads = store.loads
        store.put(record(4, "T4", "R4"))
        try await eventually("it is read") { store.loads > loads }
        try await holds("the later token stays") { client.currentToken()?.value == Secret("T5") }
    }

    @Test("a refresh token is not sent by one who has lost the lease meanwhile")
    func lostLease() async throws {
        let endpoint = try TokenEndpoint([.token("T9", refreshToken: "R9")])
        let store = SharedMemoryStore()
        store.put(record(1, nil, "R1"))
        let later = record(2, "T2", "R2")
        // Reading the secret takes so long that another process gets the lease and the next token.
        let secret = SlowSecret {
            store.takeLease()
            store.put(later, tells: false)
        }
        let client = try makeClient(
            endpoint, credentials: OAuthClientSecretCredentials(identifier: "one", secret: secret), store: store)
        #expect(try await client.accessToken(waiting: .seconds(20)).value == Secret("T2"))
        #expect(endpoint.requests.isEmpty)
    }
}

/// Something happens while it is read, the first time.
private final class SlowSecret: SecretProvider {
    private let happening: @Sendable () -> Void

    init(_ happening: @escaping @Sendable () -> Void) { self.happening = happening }

    func secret() async throws -> Secret {
        happening()
        return Secret("s3cret")
    }
}
