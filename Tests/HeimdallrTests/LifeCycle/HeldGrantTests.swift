import Testing

@testable import Heimdallr

@Suite struct `What a token can be had with` {
    private let begin = ContinuousClock.now

    private func at(_ seconds: Double) -> ContinuousClock.Instant { begin + .seconds(seconds) }

    @Test("two refusals two seconds apart make a grant doubtful: then every other attempt does without it")
    func doubt() {
        var grant = HeldGrant()
        grant.replace(Secret("R"), nil, nil)
        grant.attempts(.refresh(Secret("R")))
        #expect(grant.refused(at: at(0)) == at(2))
        #expect(grant.isInDoubt(until: at(2)))
        #expect(!grant.isInDoubt(until: at(60)), "a server that asks for patience")
        #expect(grant.refused(at: at(1.5)) == at(2))
        #expect(grant.refused(at: at(2)) == nil)
        #expect(!grant.isInDoubt(until: at(2)))
        #expect(grant.nextKind(.nobody) == .grant)
        #expect(grant.nextKind(.person) == .refresh(Secret("R")), "there is no other way")
        grant.attempts(.grant)
        #expect(grant.nextKind(.nobody) == .refresh(Secret("R")))
        grant.restoreTrust()
        grant.attempts(.refresh(Secret("R")))
        #expect(grant.nextKind(.nobody) == .refresh(Secret("R")))
        #expect(grant.refused(at: at(10)) == at(12), "a new row")
    }

    @Test("a grant that the server does not take any more is known to be spent, also after all was forgotten")
    func spent() {
        var grant = HeldGrant()
        grant.replace(Secret("R"), nil, SignIn(name: "ada"))
        #expect(grant.signIn?.name == "ada")
        grant.lose(Secret("R"))
        #expect(grant.refreshToken == nil)
        #expect(grant.signIn == nil)
        grant.forget()
        #expect(grant.spent == Secret("R"))
    }
}

@Suite struct `Rejections on first use` {
    @Test("from the second refusal in a row the next request waits, ever longer; a later use ends the row")
    func row() {
        let now = ContinuousClock.now
        var rejections = Rejections()
        func reject(first: Bool = true) {
            rejections.rejected(onFirstUse: first, least: .seconds(1), Moment(now: now, wallClock: 0) { 1 })
        }
        reject()
        #expect(rejections.until == nil)
        var pauses: [Double] = []
        for _ in 0..<4 {
            reject()
            pauses.append(now.duration(to: rejections.until ?? now) / .seconds(1))
            rejections.tried()
            #expect(rejections.until == nil)
        }
        #expect(pauses == [4, 8, 16, 32])
        reject(first: false)
        reject()
        #expect(rejections.until == nil)
        reject()
        #expect(rejections.until == now + .seconds(4))
    }
}
