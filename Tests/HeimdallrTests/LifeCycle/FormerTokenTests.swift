import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `A new token that no resource has accepted yet` {
    private static let resource = "api"

    /// A client whose token T1 was accepted, and was then replaced by T2.
    private func refreshed(needs: GrantNeeds = .nobody, _ between: (inout DrivenLifeCycle) -> Void = { _ in }) throws
        -> DrivenLifeCycle
    {
        var cycle = DrivenLifeCycle(needs: needs)
        cycle.start()
        if needs == .person {
            try cycle.logIn(DrivenLifeCycle.response("T1", expiresIn: 100, refreshToken: "R1"))
        } else {
            cycle.answer(DrivenLifeCycle.token("T1", expiresIn: 100, refreshToken: "R1"))
        }
        #expect(cycle.use() == "T1")
        accept(&cycle)
        between(&cycle)
        cycle.pass(70)
        if cycle.fetch != nil { cycle.answer(DrivenLifeCycle.token("T2", refreshToken: "R2")) }
        return cycle
    }

    private func accept(_ cycle: inout DrivenLifeCycle) {
        guard let token = cycle.life.token else { return }
        token.noteAccepted()
        cycle.life.accepted(token.generation, by: Self.resource, isReplay: false)
    }

    private func refuse(
        _ cycle: inout DrivenLifeCycle, _ generation: UInt64? = nil, isReplay: Bool = false
    ) -> Bool {
        let generation = generation ?? cycle.life.token?.generation ?? 0
        defer { cycle.collect() }
        return cycle.life.refused(
            generation, by: Self.resource, saysInvalid: true, isReplay: isReplay, cycle.moment)
    }

    /// The token for a request that was refused with the current token.
    private func replay(_ cycle: inout DrivenLifeCycle) -> String? {
        let id = cycle.nextWaiter
        cycle.nextWaiter += 1
        cycle.life.wait(
            id, for: Self.resource, insteadOf: cycle.life.token?.generation, until: cycle.now + .seconds(5),
            cycle.moment)
        cycle.collect()
        return cycle.outcomes[id]?.token
    }

    @Test("a new token is replaced by the former one after a 401, without a token request, and tried again later")
    func replayed() throws {
        for needs in [GrantNeeds.nobody, .person] {
            var cycle = try refreshed(needs: needs)
            let asked = cycle.fetches.count
            #expect(cycle.use() == "T2")
            #expect(refuse(&cycle))
            #expect(replay(&cycle) == "T1")
            #expect(refuse(&cycle), "another request of the same moment")
            #expect(cycle.use() == "T1", "further requests")
            #expect(cycle.life.inUse?.token(at: cycle.now) == nil, "no short way past the pause")
            cycle.pass(1)
            #expect(cycle.use() == "T2")
            #expect(refuse(&cycle))
            cycle.pass(1.5)
            #expect(cycle.use() == "T1", "the pause has doubled")
            cycle.pass(0.5)
            #expect(cycle.use() == "T2")
            accept(&cycle)
            #expect(cycle.life.suspicions.former == nil)
            #expect(cycle.fetches.count == asked)
            #expect(cycle.life.inUse?.token(at: cycle.now)?.value == Secret("T2"))
        }
    }

    @Test("a new token is refused like any token once the former one has ended")
    func ended() throws {
        var cycle = try refreshed()
        cycle.pass(40)
        #expect(cycle.use() == "T2")
        let asked = cycle.fetches.count
        #expect(refuse(&cycle))
        #expect(replay(&cycle) == nil)
        cycle.pass(1)
        #expect(cycle.fetches.count == asked + 1)
    }

    @Test("a new token has no former one if that was refused: before, or at the replay")
    func refusedFormer() throws {
        // The 401 to T1 causes the refresh.
        let cycle = try refreshed { _ = self.refuse(&$0) }
        #expect(cycle.life.token?.value == Secret("T2") && cycle.life.suspicions.former == nil)
        var other = try refreshed()
        let former = try #require(other.life.suspicions.former?.token.generation)
        #expect(refuse(&other))
        #expect(replay(&other) == "T1")
        #expect(!refuse(&other, former, isReplay: true))
        #expect(other.use() == "T2")
        let asked = other.fetches.count
        #expect(refuse(&other))
        other.pass(1)
        #expect(other.fetches.count == asked + 1, "now the new one is in doubt")
    }

    @Test("a new token has no former one after a sign-in, a sign-out, a rejection, or an end by another process")
    func goneFormer() throws {
        var login = try refreshed(needs: .person)
        try login.logIn(DrivenLifeCycle.response("T3", refreshToken: "R3"))
        #expect(login.life.suspicions.former == nil && login.use() == "T3")
        var signOut = try refreshed()
        #expect(refuse(&signOut))
        signOut.life.clear(signOut.moment)
        signOut.collect()
        #expect(signOut.use() == nil)
        var rejected = try refreshed()
        rejected.reject()
        #expect(rejected.use() == nil)
        var elsewhere = try refreshed(needs: .person)
        #expect(refuse(&elsewhere))
        elsewhere.read(.change, .success(nil))
        #expect(elsewhere.use() == nil)
        var adopted = try refreshed(needs: .person)
        adopted.read(.change, .success(adopted.record("T9", refreshToken: "R9", revision: 99)))
        #expect(adopted.life.suspicions.former == nil && adopted.use() == "T9", "perhaps another person's")
        var shared = try refreshed()
        accept(&shared)
        shared.read(.change, .success(shared.record("T9", refreshToken: "R9", revision: 99)))
        #expect(shared.life.suspicions.former?.token.value == Secret("T2"))
    }

    @Test func `a new token is revoked together with the former one, and none of them is used then`() async throws {
        let clock = ManualClock()
        let endpoint = try TokenEndpoint { request, number in
            request["token"] == nil ? .token("T\(number)", expiresIn: "100") : .status(200)
        }
        let client = try makeClient(endpoint, clock: clock.clock) { $0.revocationEndpoint = endpoint.url }
        defer { client.shutdown() }
        client.accepted(try await client.accessToken(), by: Self.resource, isReplay: false)
        clock.advance(by: .seconds(80))
        _ = client.currentToken()
        let new = try await eventually("the next token") {
            client.currentToken().flatMap { $0.value == Secret("T1") ? $0 : nil }
        }
        #expect(client.refused(new, by: Self.resource, saysInvalid: false, isReplay: false))
        #expect(client.currentToken()?.value == Secret("T0"))
        #expect(await client.logOut().isComplete)
        #expect(endpoint.requests.compactMap { $0["token"] } == ["T1", "T0"])
        #expect(client.currentToken() == nil)
    }

    @Test func `a new token of an assertion or token from elsewhere, maybe of another person, has no former one`() {
        for namesIdentityAnew in [false, true] {
            var cycle = DrivenLifeCycle(namesIdentityAnew: namesIdentityAnew)
            cycle.start()
            cycle.answer(DrivenLifeCycle.token("ALICE", expiresIn: 100))
            #expect(cycle.use() == "ALICE")
            accept(&cycle)
            cycle.pass(70)
            if cycle.fetch != nil { cycle.answer(DrivenLifeCycle.token("BOB")) }
            #expect(cycle.life.suspicions.former?.token.value == (namesIdentityAnew ? nil : Secret("ALICE")))
        }
    }
}
