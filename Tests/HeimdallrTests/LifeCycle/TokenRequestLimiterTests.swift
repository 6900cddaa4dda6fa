import Synchronization
import TestSupport
import Testing

@testable import Heimdallr

@Suite("slots for token requests", .timeLimit(.minutes(1)))
struct TokenRequestLimiterTests {
    private let one = TokenRequestLimiter(.one)

    @Test func `a wait ends with its slot, with its deadline or with its task`() async throws {
        let first = try #require(await one.acquire())
        #expect(!first.hasWaited)
        #expect(await one.acquire(until: .now + .milliseconds(20)) == nil)
        let cancelled = Task { await one.acquire() }
        cancelled.cancel()
        #expect(await cancelled.value == nil)
        let second = Task { await one.acquire() }
        await Task.yield()
        one.release(first)
        one.release(try #require(await second.value))
        #expect(await one.acquire()?.hasWaited == false)
    }

    @Test func `slots that nobody answers for a second leave room, without another event`() async throws {
        var limits = TokenRequestLimits()
        limits.fresh = 1
        limits.slowAfter = .milliseconds(50)
        let limiter = TokenRequestLimiter(limits)
        let hung = try #require(await limiter.acquire(.init(client: 1, endpoint: "hung")))
        let other = try #require(await limiter.acquire(.init(client: 2, endpoint: "healthy")))
        #expect(other.hasWaited)
        limiter.release(hung)
    }

    /// Time limits count from the call, as those of a send do.
    @Test func `discovery and revocation have slots, too, and wait no longer than they may take`() async throws {
        let asked = Mutex<[Duration]>([])
        let inner = ScriptedHTTPClient { request in
            asked.withLock { $0.append(request.timeout) }
            return HeimdallrHTTPResponse(status: 200)
        }
        let client = LimitedHTTPClient(inner, one)
        let slot = try #require(await client.slot(for: "https://idp.example/token"))
        let request = HeimdallrHTTPRequest(url: "https://idp.example/keys", timeout: .milliseconds(50))
        await #expect(throws: HeimdallrHTTPClientError.timeout) { try await client.send(request) }
        let patient = Task {
            try await client.send(HeimdallrHTTPRequest(url: "https://idp.example/keys", timeout: .seconds(20)))
        }
        try await eventually("it waits") { one.waiting == 1 }
        client.release(slot)
        #expect(try await patient.value.status == 200)
        #expect(asked.withLock { $0.count == 1 && $0.allSatisfy { $0 <= .seconds(20) } })
    }

    @Test func `a request that had to wait is made anew, with an assertion of its own`() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let made = Atomic<Int>(0)
        let credentials = OAuthClientAssertionCredentials(
            identifier: "c",
            assertion: SecretClosureProvider { Secret("assertion-\(made.add(1, ordering: .relaxed).newValue)") })
        let client = try makeClient(endpoint, credentials: credentials, limiter: one)
        let slot = try #require(await one.acquire())
        client.start()
        try await eventually("the first one") { made.load(ordering: .relaxed) == 1 }
        try await eventually("it waits") { one.waiting == 1 }
        one.release(slot)
        #expect(try await client.accessToken().value == Secret("T1"))
        #expect(endpoint.requests.map { $0["client_assertion"] } == ["assertion-2"])
    }

    @Test func `a caller's exchange that nobody waits for is given up before it is sent`() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let client = try makeClient(
            endpoint, grant: TokenExchangeGrant(subject: .caller()), limiter: one)
        let slot = try #require(await one.acquire())
        let alice = try client.client(of: Array("alice".utf8).span)
        let bob = try client.client(of: Array("bob".utf8).span)
        let leaver = Task { try await alice.accessToken() }
        let stayer = Task { try await bob.accessToken() }
        try await eventually("both wait for a slot") {
            [alice, bob].allSatisfy { $0.look { $0.fetch != nil && $0.fetch?.startedAt == nil } }
        }
        // A caller whose deadline passes also counts as gone.
        _ = try await client.client(of: Array("carol".utf8).span).refusal(waiting: .milliseconds(30))
        leaver.cancel()
        #expect(await leaver.result.error as? HeimdallrError == .cancelled)
        try await eventually("it is given up") { alice.look { $0.fetch == nil } }
        one.release(slot)
        #expect(try await stayer.value.value == Secret("T1"))
        #expect(endpoint.requests.map { $0["subject_token"] } == ["bob"])
        #expect(try await alice.accessToken().value == Secret("T1"))
    }
}

extension Result {
    fileprivate var error: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
