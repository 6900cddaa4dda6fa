import Testing

@testable import Heimdallr

@Suite struct `Callers that may wait for a token` {
    private static let passing: [TokenLifeCycle.Outcome] = [
        DrivenLifeCycle.status(503), DrivenLifeCycle.status(429, retryAfter: .seconds(4)),
        .fault(.network(.connect), retryAfter: nil), .fault(.limited(403, nil), retryAfter: .seconds(2)),
        .fault(.discovery(.status(404)), retryAfter: nil),
        .fault(.store(TokenStoreError("busy", kind: .busy)), retryAfter: nil),
        .fault(.secret(SecretProviderError("no such file")), retryAfter: nil),
        .fault(.answer(.notJSON), retryAfter: nil), DrivenLifeCycle.token("old", expiresIn: 0),
    ]

    @Test(arguments: passing.indices)
    func `a caller that comes after a passing fault waits for the next attempt, if that is before its deadline`(
        index: Int
    ) {
        var cycle = DrivenLifeCycle()
        let early = cycle.wait(10)
        cycle.load()
        cycle.answer(Self.passing[index])
        cycle.pass(0.5)
        let late = cycle.wait(10)
        let hasty = cycle.wait(0.1)
        #expect(cycle.outcomes[hasty]?.error?.retryAfter != nil)
        #expect(cycle.outcomes[early] == nil && cycle.outcomes[late] == nil)
        #expect(cycle.fetches.count == 1)
        while cycle.fetch == nil, cycle.time < 10 { cycle.pass(0.5) }
        cycle.answer(DrivenLifeCycle.token("T1"))
        #expect(cycle.outcomes[early]?.token == "T1" && cycle.outcomes[late]?.token == "T1")
    }

    @Test func `the last second of a token that its server keeps returning fails nobody`() {
        var cycle = DrivenLifeCycle()
        cycle.chance = 0.99
        cycle.start()
        cycle.answer(DrivenLifeCycle.token("T1", expiresIn: 2))
        #expect(cycle.use() == "T1")
        var waiters: [UInt64] = []
        // The server's token ends at 2 s.
        while cycle.time < 6 {
            cycle.pass(0.25)
            if cycle.fetch != nil {
                let left = 2 - cycle.time
                cycle.answer(
                    left > -1
                        ? DrivenLifeCycle.token("T1", expiresIn: max(0, left.rounded(.down)))
                        : DrivenLifeCycle.token("T2"))
            }
            if cycle.use() == nil { waiters.append(cycle.wait(10)) }
        }
        #expect(!waiters.isEmpty)
        for id in waiters {
            #expect(cycle.outcomes[id]?.token != nil, "\(id): \(String(describing: cycle.outcomes[id]))")
        }
        #expect(cycle.use() == "T2")
    }

    @Test func `a fault that needs a repair, or the identity provider's sign-in, is told at once`() {
        var unsigned = SecretProviderError("nobody is signed in")
        unsigned.mayPass = false
        for fault in [TokenEndpointFault.refused(OAuthError(status: 401, code: .invalidClient)), .secret(unsigned)] {
            var cycle = DrivenLifeCycle()
            cycle.start()
            cycle.answer(.fault(fault, retryAfter: nil))
            let id = cycle.wait(3600)
            #expect(cycle.outcomes[id]?.error?.fault == fault)
        }
    }

    private static let away = Result<TokenRecord?, TokenStoreError>.failure(
        TokenStoreError("the database is away", kind: .unreachable))

    @Test func `callers wait for a store that may hold a sign-in, and get its token`() {
        var cycle = DrivenLifeCycle(needs: .person)
        let early = cycle.wait(10)
        cycle.read(.start, Self.away)
        let late = cycle.wait(10)
        let hasty = cycle.wait(0.1)
        #expect(cycle.outcomes[hasty]?.error?.retryAfter == .seconds(5))
        cycle.pass(3)
        #expect(cycle.readings == [.start, .repair])
        cycle.read(.repair, .success(cycle.record("T1")))
        #expect(cycle.outcomes[early]?.token == "T1" && cycle.outcomes[late]?.token == "T1")
    }

    @Test func `a store that comes back without a sign-in ends the wait, and one that stays away at the deadline`() {
        var cycle = DrivenLifeCycle(needs: .person)
        cycle.chance = 0.99
        cycle.life.start(cycle.moment)
        cycle.collect()
        cycle.read(.start, Self.away)
        let long = cycle.wait(100)
        let short = cycle.wait(5)
        for _ in 0..<4 {
            while cycle.readings.count < 2, cycle.outcomes[short] == nil { cycle.pass(0.5) }
            cycle.readings = [.start]
            cycle.read(.repair, Self.away)
        }
        #expect(
            cycle.outcomes[short]?.error?.fault == .store(TokenStoreError("the database is away", kind: .unreachable)))
        #expect(cycle.outcomes[long] == nil)
        cycle.read(.repair, .success(nil))
        #expect(cycle.outcomes[long] == .failure(.needsAuthentication))
    }

    // MARK: Repairs

    private static let refused = DrivenLifeCycle.refused(.invalidClient, status: 401)

    private func change(_ cycle: inout DrivenLifeCycle) {
        cycle.life.repaired(cycle.moment)
        cycle.collect()
    }

    @Test(arguments: [
        refused, .fault(.secret(SecretProviderError("no such file")), retryAfter: nil), DrivenLifeCycle.status(403),
        .fault(.network(.tls("expired")), retryAfter: nil),
    ])
    func `a changed secret or certificate ends the backoff of a client without a token`(fault: TokenLifeCycle.Outcome) {
        var cycle = DrivenLifeCycle()
        cycle.chance = 0.999
        cycle.start()
        for _ in 0..<6 {
            while cycle.fetch == nil { cycle.pass(1) }
            cycle.answer(fault)
        }
        let count = cycle.fetches.count
        cycle.pass(2)
        change(&cycle)
        #expect(cycle.fetches.count == count + 1)
        cycle.answer(DrivenLifeCycle.token("T1"))
        #expect(cycle.use() == "T1")
    }

    @Test func `a change keeps the pause of Retry-After, and a second between two requests`() {
        var cycle = DrivenLifeCycle()
        cycle.start()
        cycle.answer(.fault(.refused(OAuthError(status: 401, code: .invalidClient)), retryAfter: .seconds(20)))
        change(&cycle)
        cycle.pass(19)
        #expect(cycle.fetches.count == 1)
        cycle.pass(1)
        #expect(cycle.fetches.count == 2)
        cycle.answer(Self.refused)
        change(&cycle)
        #expect(cycle.fetches.count == 2)
        cycle.pass(1)
        #expect(cycle.fetches.count == 3)
    }

    @Test func `a change during a request counts once the server has refused the former secret`() {
        var cycle = DrivenLifeCycle()
        cycle.chance = 0.999
        let id = cycle.wait(10)
        cycle.load()
        #expect(cycle.life.sends(1, now: cycle.now) == true)
        change(&cycle)
        #expect(cycle.fetches.count == 1)
        cycle.answer(Self.refused)
        #expect(cycle.outcomes[id] == nil)
        cycle.pass(1)
        #expect(cycle.fetches.count == 2)
        cycle.answer(Self.refused)
        #expect(cycle.outcomes[id]?.error != nil, "one change is one further attempt")
    }

    @Test func `a change while all is well starts no token request`() {
        var cycle = DrivenLifeCycle()
        cycle.start()
        cycle.answer(DrivenLifeCycle.token("T1"))
        change(&cycle)
        cycle.pass(10)
        #expect(cycle.fetches.count == 1)
        var person = DrivenLifeCycle(needs: .person)
        person.start()
        change(&person)
        #expect(person.fetches.isEmpty)
    }
}
