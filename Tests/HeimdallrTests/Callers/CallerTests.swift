import Heimdallr
import Synchronization
import TestSupport
import Testing

/// Callers come and go. The token request belongs to none of them.
@Suite struct `Callers` {
    @Test("500 callers on a cold start make one token request, and all get its token")
    func coldStart() async throws {
        let endpoint = try TokenEndpoint([.token("T1", delay: .milliseconds(300))])
        let client = try makeClient(endpoint)
        #expect(try await tokens(500, of: client) == Array(repeating: "T1", count: 500))
        #expect(endpoint.requests.count == 1)
    }

    @Test("500 callers after a burst of 401s make one token request")
    func afterBurst() async throws {
        let endpoint = try TokenEndpoint([.token("T1"), .token("T2", delay: .milliseconds(300)), .token("T3")])
        let clock = ManualClock()
        let client = try makeClient(endpoint, clock: clock.clock)
        let old = try await client.accessToken()
        clock.advance(by: .seconds(100))
        let values = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<500 {
                group.addTask {
                    client.reject(old)
                    return try await client.accessToken().value.revealed
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(values == Array(repeating: "T2", count: 500))
        #expect(endpoint.requests.count == 2)
    }

    @Test("a caller that leaves cancels nothing, and has one outcome")
    func leaving() async throws {
        let endpoint = try TokenEndpoint([.token("T1", delay: .milliseconds(400))])
        let client = try makeClient(endpoint)
        let leaver = Task { try await client.accessToken() }
        _ = try await endpoint.requests(1)
        leaver.cancel()
        let result = await leaver.result
        #expect(throws: HeimdallrError.cancelled) { try result.get() }
        #expect(try await client.accessToken().value == Secret("T1"))
        #expect(endpoint.requests.count == 1)
    }

    @Test("a caller that was cancelled before it came does not wait")
    func cancelledBefore() async throws {
        let endpoint = try TokenEndpoint([.silence])
        let client = try makeClient(endpoint)
        let gate = Signal()
        let task = Task {
            await gate.waitWhateverComes()
            return try await client.accessToken(waiting: .seconds(3600))
        }
        task.cancel()
        gate.give()
        let result = await task.result
        #expect(throws: HeimdallrError.cancelled) { try result.get() }
        client.shutdown()
    }

    @Test("thousands of callers that leave at any moment: one outcome each, and one token request")
    func stress() async throws {
        let endpoint = try TokenEndpoint([.token("T1", delay: .milliseconds(200))])
        let client = try makeClient(endpoint)
        let outcomes = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<3000 {
                group.addTask {
                    let task = Task { try await client.accessToken() }
                    if number % 3 == 0 {
                        await Task.yield()
                        task.cancel()
                    }
                    switch await task.result {
                    case .success(let token): return token.value == Secret("T1")
                    case .failure(let error): return number % 3 == 0 && (error as? HeimdallrError) == .cancelled
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.count == 3000)
        #expect(outcomes.allSatisfy { $0 })
        #expect(endpoint.requests.count == 1)
        #expect(client.status().waiters == 0)
    }

    @Test("a deadline that passes ends that wait only")
    func deadline() async throws {
        let endpoint = try TokenEndpoint([.token("T1", delay: .milliseconds(600))])
        let client = try makeClient(endpoint)
        let patient = Task { try await client.accessToken() }
        let error = try await client.refusal(waiting: .milliseconds(100))
        #expect(error == .deadlineExceeded(retryAfter: .seconds(1)))
        #expect(try await patient.value.value == Secret("T1"))
        #expect(endpoint.requests.count == 1)
    }

    @Test("shutdown ends every wait and every stream of events")
    func shutdown() async throws {
        let endpoint = try TokenEndpoint([.silence])
        let client = try makeClient(endpoint)
        let events = client.events()
        let waiters = (0..<20).map { _ in Task { try await client.accessToken() } }
        _ = try await endpoint.requests(1)
        client.shutdown()
        for waiter in waiters {
            let result = await waiter.result
            #expect(throws: HeimdallrError.stopped) { try result.get() }
        }
        for await _ in events {}
        for await _ in client.events() {}
        #expect(client.currentToken() == nil)
        #expect(client.status().state == .stopped)
        #expect(try await client.refusal() == .stopped)
    }

    @Test("the number of concurrent token requests is bounded over all clients, and every client gets its token")
    func limiter() async throws {
        let endpoint = try TokenEndpoint { request, _ in
            .token("T-\(request["client_id"] ?? "")", delay: .milliseconds(30))
        }
        let limiter = TokenRequestLimiter()
        let clients = try (0..<60).map { number in
            try makeClient(
                endpoint, name: "c\(number)", credentials: OAuthClientSecretCredentials(identifier: "c\(number)"),
                limiter: limiter)
        }
        for client in clients { client.start() }
        for client in clients {
            #expect(try await client.accessToken().value.revealed == "T-\(client.name)")
        }
        #expect(endpoint.requests.count == 60)
        #expect(endpoint.mostAtOnce <= 16)
        #expect(endpoint.mostAtOnce > 4)
    }

    private func tokens(_ count: Int, of client: Heimdallr) async throws -> [String] {
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<count { group.addTask { try await client.accessToken().value.revealed } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }
}
