import Heimdallr
import TestSupport
import Testing

/// One client, two objects: a reload makes a new one, and the record has one owner at any time.
@Suite struct `A client that follows another one in the process` {
    private struct Pair {
        let former: Heimdallr
        let formerStore: ClientStore
        let next: Heimdallr
        let nextStore: ClientStore

        init(_ endpoint: TokenEndpoint, _ store: any OAuthAccessTokenStore, _ grant: any OAuthAuthorizationGrant) throws
        {
            formerStore = ClientStore(store, isHeld: false)
            nextStore = ClientStore(store, isHeld: true)
            func make(_ store: ClientStore) throws -> Heimdallr {
                try makeClient(endpoint, grant: grant, store: store) {
                    $0.authorizationEndpoint = "http://127.0.0.1:9/authorize"
                }
            }
            former = try make(formerStore)
            next = try make(nextStore)
        }

        func handOver() async {
            let unsaved = await former.handOver(within: .seconds(60))
            formerStore.retire()
            nextStore.open()
            next.start(inheriting: unsaved)
        }
    }

    private static func record() -> TokenRecord {
        let now = HeimdallrClock.system.wallClock()
        return TokenRecord(
            revision: 1, accessToken: Secret("T1"), issuedAt: now - 1, expiresAt: now + 3600, refreshToken: Secret("R1")
        )
    }

    @Test("a request that is under way ends first, and the next one goes on with what it brought")
    func underWay() async throws {
        let (asked, gate) = (Gate(), Gate())
        let endpoint = try TokenEndpoint { _, number in
            asked.open()
            gate.wait()
            return .token("T\(number + 2)", refreshToken: "R\(number + 2)")
        }
        defer { gate.open() }
        let store = SharedMemoryStore()
        store.put(Self.record())
        let pair = try Pair(endpoint, store, InteractiveGrant(.browser))
        pair.former.start()
        try await eventually("the stored token") { pair.former.hasAccessToken }
        pair.former.refreshNow()
        try await offPool { asked.wait() }
        let change = Task { await pair.handOver() }
        pair.next.refreshNow()
        gate.open()
        await change.value
        try await eventually("the new token") { pair.next.currentToken()?.value == Secret("T2") }
        #expect(endpoint.requests.map { $0["refresh_token"] } == ["R1"])
        #expect(store.record()?.refreshToken == Secret("R2"))
    }

    @Test("a request in the queue is given up at a hand-over: its refresh token is the next client's to spend")
    func inLine() async throws {
        let endpoint = try TokenEndpoint([.token("T2", refreshToken: "R2")])
        let shared = SharedMemoryStore()
        shared.put(Self.record())
        let pair = try Pair(endpoint, shared, InteractiveGrant(.browser))
        pair.former.start()
        try await eventually("the stored token") { pair.former.hasAccessToken }
        await pair.handOver()
        pair.former.refreshNow()
        pair.former.invalidateAccessToken()
        let error = try await pair.former.refusal()
        #expect("\(error)".contains("settings have changed"), "\(error)")
        try await eventually("the record") { pair.next.currentToken()?.value == Secret("T1") }
        #expect(endpoint.requests.isEmpty)
    }

    @Test("a client that ends begins no token request: other clients of the process may still wait for theirs")
    func ending() async throws {
        let endpoint = try TokenEndpoint([.token("T2", refreshToken: "R2")])
        let store = SharedMemoryStore()
        store.put(Self.record())
        let client = try makeClient(endpoint, grant: InteractiveGrant(.browser), store: store) {
            $0.authorizationEndpoint = "http://127.0.0.1:9/authorize"
        }
        client.start()
        try await eventually("the stored token") { client.hasAccessToken }
        await client.drain(within: .seconds(60))
        client.refreshNow()
        client.invalidateAccessToken()
        let error = try await client.refusal()
        #expect("\(error)".contains("the process ends"), "\(error)")
        #expect(endpoint.requests.isEmpty)
        #expect(store.record()?.refreshToken == Secret("R1"))
        client.shutdown()
    }

    @Test("a retired store throws: it never says that there is nothing")
    func retired() async throws {
        let shared = SharedMemoryStore()
        shared.put(Self.record())
        let store = ClientStore(shared, isHeld: false)
        let lease = try #require(try await store.lease(client: "billing"))
        #expect(await lease.isHeld())
        store.retire()
        #expect(await !lease.isHeld())
        func isRefused(_ error: any Error) -> Bool { (error as? TokenStoreError)?.kind == .busy }
        await #expect { _ = try await store.load(client: "billing") } throws: { isRefused($0) }
        await #expect { _ = try await store.lease(client: "billing") } throws: { isRefused($0) }
        await #expect { try await store.save(Self.record(), client: "billing") } throws: { isRefused($0) }
        await #expect { try await store.remove(client: "billing") } throws: { isRefused($0) }
        #expect(shared.record() == Self.record())
    }

    @Test("a record that could not be saved is the next client's to save")
    func unsaved() async throws {
        let endpoint = try TokenEndpoint([.token("T1", refreshToken: "R1")])
        let shared = SharedMemoryStore()
        shared.isAway = true
        let pair = try Pair(endpoint, shared, ClientCredentialsGrant())
        pair.former.start()
        _ = try await pair.former.accessToken(waiting: .seconds(20))
        #expect(shared.record() == nil)
        await pair.handOver()
        try await eventually("the inherited token") { pair.next.currentToken()?.value == Secret("T1") }
        shared.isAway = false
        try await eventually("the record") { shared.record()?.refreshToken == Secret("R1") }
        #expect(endpoint.requests.count == 1)
    }

    @Test("callers keep their tokens and their requests under way; a new token is asked for with the new settings")
    func callers() async throws {
        let gate = Gate()
        let endpoint = try TokenEndpoint { request, _ in
            if request["subject_token"] == "bob" { gate.wait() }
            return .token("T-\(request["subject_token"] ?? "")", expiresIn: "100")
        }
        defer { gate.open() }
        let clock = ManualClock()
        func make(_ headers: [HeimdallrHTTPField]) throws -> Heimdallr {
            try makeClient(endpoint, grant: TokenExchangeGrant(subject: .caller()), clock: clock.clock) {
                $0.headers = headers
            }
        }
        let (former, next) = (try make([]), try make([HeimdallrHTTPField(name: "X-Settings", value: "new")]))
        func client(_ caller: String, of parent: Heimdallr) throws -> Heimdallr {
            try parent.client(of: Array(caller.utf8).span)
        }
        let alice = try await client("alice", of: former).accessToken()
        let bob = try client("bob", of: former)
        let waiting = Task { try await bob.accessToken() }
        _ = try await endpoint.requests(2)
        next.takeOverCallers(of: former)
        former.shutdown()
        #expect(try client("alice", of: next).currentToken()?.value == alice.value)
        let second = Task { try await client("bob", of: next).accessToken() }
        gate.open()
        #expect(try await waiting.value.value == second.value.value)
        #expect(endpoint.requests.count == 2)

        clock.advance(by: .seconds(101))
        _ = try await client("alice", of: next).accessToken()
        #expect(endpoint.requests.count == 3)
        #expect(endpoint.requests.map { $0.fields.value("X-Settings") } == [nil, nil, "new"])
    }
}
