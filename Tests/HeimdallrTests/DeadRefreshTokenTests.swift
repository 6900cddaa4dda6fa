import TestSupport
import Testing

@testable import Heimdallr

/// Servers that do not say `invalid_grant` when a refresh token is dead.
@Suite struct `A refresh token that is refused for no good reason` {
    static let refusals: [TokenLifeCycle.Outcome] = [
        LifeCycleRig.status(400), LifeCycleRig.status(401), LifeCycleRig.refused(.invalidRequest),
        LifeCycleRig.refused(.invalidRequest, status: 401), LifeCycleRig.refused(.invalidScope),
        LifeCycleRig.refused(.unauthorizedClient), LifeCycleRig.refused(.unsupportedGrantType),
        LifeCycleRig.refused(OAuthError.Code(rawValue: "tea_break")),
    ]

    static let others: [TokenLifeCycle.Outcome] = [
        LifeCycleRig.refused(.invalidClient), LifeCycleRig.refused(.invalidClient, status: 401),
        LifeCycleRig.status(403), LifeCycleRig.refused(.invalidRequest, status: 403), LifeCycleRig.status(404),
        LifeCycleRig.status(429), LifeCycleRig.refused(.invalidRequest, status: 429), LifeCycleRig.status(500),
        LifeCycleRig.refused(.serverError, status: 503), .fault(.network(.connect), retryAfter: nil),
    ]

    @Test("twice, two seconds apart, and somebody has to log in; it is kept, tried now and then, and good again")
    func attended() {
        for refusal in Self.refusals {
            var rig = LifeCycleRig(needs: .person)
            rig.start(stored: rig.record(nil, refreshToken: "R1"))
            rig.answer(refusal)
            #expect(!rig.eventNames.contains("needs_authentication"))
            let waiter = rig.wait()
            #expect(rig.outcomes[waiter] == nil)
            rig.pass(1.5)
            #expect(rig.fetch == nil)
            rig.pass(0.5)
            #expect(rig.fetches.count == 2)
            rig.answer(refusal)
            #expect(rig.eventNames == ["token_failed", "needs_authentication"])
            #expect(rig.outcomes[waiter] == .failure(.needsAuthentication))
            #expect(rig.life.status(client: "c", grantType: "g", now: rig.now).state == .needsAuthentication)
            #expect(rig.life.refreshToken == Secret("R1"))
            for _ in 0..<3 {
                while rig.fetch == nil { rig.pass(1) }
                #expect(rig.fetches.last == .refresh(Secret("R1")))
                rig.answer(refusal)
            }
            #expect(rig.eventNames.filter { $0 == "needs_authentication" }.count == 1)
            while rig.fetch == nil { rig.pass(1) }
            rig.answer(LifeCycleRig.token("T2"))
            #expect(rig.use() == "T2")
        }
    }

    @Test("a grant that needs nobody starts afresh, and nobody's request fails")
    func unattended() {
        for refusal in Self.refusals {
            var rig = LifeCycleRig()
            rig.start(stored: rig.record(nil, refreshToken: "R1"))
            let first = rig.wait()
            rig.answer(refusal)
            let second = rig.wait()
            rig.pass(2)
            rig.answer(refusal)
            rig.pass(1)
            #expect(rig.time <= 3)
            #expect(rig.fetches == [.refresh(Secret("R1")), .refresh(Secret("R1")), .grant])
            rig.answer(LifeCycleRig.token("T1"))
            #expect(rig.outcomes[first]?.token == "T1")
            #expect(rig.outcomes[second]?.token == "T1")
            #expect(!rig.eventNames.contains("needs_authentication"))
        }
    }

    @Test("once it is doubtful, the refresh token and fresh grants take turns")
    func turns() {
        var rig = LifeCycleRig()
        rig.start(stored: rig.record(nil, refreshToken: "R1"))
        for _ in 0..<2 {
            while rig.fetch == nil { rig.pass(0.5) }
            rig.answer(LifeCycleRig.status(401))
        }
        while rig.fetch == nil { rig.pass(0.5) }
        #expect(rig.fetches.last == .grant)
        rig.answer(LifeCycleRig.status(500))
        while rig.fetch == nil { rig.pass(1) }
        #expect(rig.fetches.last == .refresh(Secret("R1")))
        rig.answer(LifeCycleRig.status(401))
        while rig.fetch == nil { rig.pass(1) }
        #expect(rig.fetches.last == .grant)
        rig.answer(LifeCycleRig.token("T1"))
        #expect(rig.use() == "T1")
        // The next time one refusal is enough.
        rig.pass(3600)
        rig.wait()
        #expect(rig.fetches.last == .refresh(Secret("R1")))
        rig.answer(LifeCycleRig.status(401))
        rig.pass(1)
        #expect(rig.fetches.last == .grant)
    }

    @Test("a refresh token that was handed in and is refused like that: somebody has to hand in a new one")
    func seed() {
        for refusal in Self.refusals {
            var rig = LifeCycleRig(needs: .freshSeed)
            rig.start()
            #expect(rig.fetches == [.grant])
            rig.answer(refusal)
            rig.pass(2)
            rig.answer(refusal)
            #expect(rig.eventNames == ["token_failed", "needs_authentication"])
            while rig.fetch == nil { rig.pass(1) }
            rig.answer(LifeCycleRig.token("T1", refreshToken: "R1"))
            #expect(rig.use() == "T1")
        }
    }

    @Test("the client's own fault, 403, 429 and 5xx end nothing, however often they come")
    func others() {
        for fault in Self.others {
            var rig = LifeCycleRig(needs: .person)
            rig.start(stored: rig.record(nil, refreshToken: "R1"))
            for _ in 0..<6 {
                while rig.fetch == nil { rig.pass(1) }
                rig.answer(fault)
            }
            #expect(!rig.eventNames.contains("needs_authentication"))
            #expect(rig.life.refreshToken == Secret("R1"))
        }
    }

    @Test("a refusal, an outage, and a refusal are two refusals")
    func outageBetween() {
        var rig = LifeCycleRig(needs: .person)
        rig.start(stored: rig.record(nil, refreshToken: "R1"))
        for outcome in [LifeCycleRig.status(400), LifeCycleRig.status(503), LifeCycleRig.refused(.invalidRequest)] {
            while rig.fetch == nil { rig.pass(1) }
            rig.answer(outcome)
        }
        #expect(rig.eventNames.last == "needs_authentication")
    }

    @Test("over real sockets and in real time: a dead refresh token costs seconds")
    func realTime() async throws {
        let endpoint = try TokenEndpoint { request, number in
            if request["grant_type"] == "refresh_token" { return .error("invalid_request") }
            return .token("T\(number)", refreshToken: "dead")
        }
        let store = RecordingStore(["billing": record(refreshToken: "dead")])
        let client = try makeClient(endpoint, store: store)
        let begin = ContinuousClock.now
        _ = try await client.accessToken()
        #expect(ContinuousClock.now - begin < .seconds(6))
        #expect(
            endpoint.requests.map { $0["grant_type"] } == ["refresh_token", "refresh_token", "client_credentials"])
        client.shutdown()
    }

    private func record(refreshToken: String) -> TokenRecord {
        TokenRecord(
            revision: 1, accessToken: nil, issuedAt: 0, expiresAt: 0, refreshToken: Secret(refreshToken))
    }
}
