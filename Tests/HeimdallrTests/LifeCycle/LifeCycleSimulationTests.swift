import Testing

@testable import Heimdallr

/// A generator that gives the same numbers each time, so that a failure can be seen again.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed &+ 0x9E37_79B9_7F4A_7C15 }

    mutating func next() -> UInt64 {
        // SplitMix64
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

/// Hours of a client's life with a server, a resource, a disk and callers that do anything at any time.
@Suite struct `A random life` {
    @Test(
        "whatever happens, there is one fetch at a time, one a second, no bad token, one outcome each, and recovery",
        arguments: 0..<60)
    func anything(seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        let needs = [GrantNeeds.nobody, .freshSeed, .person][Int(seed % 3)]
        var cycle = DrivenLifeCycle(needs: needs)
        cycle.start(stored: cycle.record(nil, refreshToken: "R0"))
        var surroundings = RandomSurroundings(seed: seed)
        for _ in 0..<1500 {
            cycle.chance = Double.random(in: 0..<1, using: &chance)
            surroundings.step(&cycle, &chance)
        }
        // The server behaves from here on.
        surroundings.isGood = true
        surroundings.finishSaving(&cycle)
        if needs == .person, cycle.life.refreshToken == nil { return }
        var waited = 0.0
        while cycle.life.token == nil, waited < 4000 {
            cycle.wait(1)
            surroundings.serve(&cycle, &chance)
            cycle.pass(0.5)
            waited += 0.5
            surroundings.serve(&cycle, &chance)
            surroundings.finishSaving(&cycle)
        }
        #expect(cycle.life.token != nil, "no recovery with seed \(seed)")
        #expect(cycle.outcomes.count >= surroundings.waits - cycle.life.waiters.count)
        cycle.pass(100)
        #expect(cycle.life.waiters.isEmpty)
    }

    /// Everything around the life cycle.
    struct RandomSurroundings {
        let seed: UInt64
        var isGood = false
        var waits = 0
        var rejected: Set<UInt64> = []
        private var askedAt: ContinuousClock.Instant?
        private var underWay: UInt64?
        private var saving: (id: UInt64, record: TokenRecord)?
        private var savingLogin: (id: UInt64, record: TokenRecord, isForgotten: Bool)?
        private var serial = 0

        init(seed: UInt64) { self.seed = seed }

        mutating func step(_ cycle: inout DrivenLifeCycle, _ chance: inout SeededGenerator) {
            switch Int.random(in: 0..<14, using: &chance) {
            case 0, 1:
                cycle.wait(Double.random(in: 0..<20, using: &chance))
                waits += 1
            case 2, 3: check(cycle.life.use(cycle.moment(0.5)), cycle)
            case 4 where Int.random(in: 0..<4, using: &chance) == 0:
                if let token = cycle.life.token {
                    rejected.insert(token.generation)
                    cycle.reject(token.generation)
                }
            case 5 where Int.random(in: 0..<20, using: &chance) == 0:
                cycle.life.clear(cycle.moment(0.5))
                savingLogin?.isForgotten = true
            case 6:
                if let id = cycle.life.waiters.keys.randomElement(using: &chance) { cycle.life.leave(id) }
            case 7, 8, 9: serve(&cycle, &chance)
            case 10: finishSaving(&cycle)
            case 11: logIn(&cycle, &chance)
            case 12 where Int.random(in: 0..<4, using: &chance) == 0:
                cycle.life.refreshNow(cycle.moment(0.5))
            default: cycle.pass([0.01, 0.1, 0.9, 1, 5, 60, 900][Int.random(in: 0..<7, using: &chance)])
            }
            cycle.collect()
            if let wake = cycle.life.nextWake, wake <= cycle.now {
                cycle.life.tick(cycle.moment(0.5))
                cycle.collect()
                if let wake = cycle.life.nextWake { #expect(wake > cycle.now, "an alarm without end, seed \(seed)") }
            }
            check(cycle.life.inUse?.token(at: cycle.now), cycle)
            for outcome in cycle.outcomes.values {
                if case .success(let token) = outcome { #expect(!token.value.isEmpty) }
            }
            if cycle.outcomes.count > 50 {
                cycle.outcomes = cycle.outcomes.filter { $0.key > cycle.nextWaiter - 10 }
                waits = 0
            }
        }

        private func check(_ token: AccessToken?, _ cycle: DrivenLifeCycle) {
            guard let token else { return }
            #expect(!token.isExpired(at: cycle.now), "an expired token, seed \(seed)")
            #expect(!rejected.contains(token.generation), "a rejected token, seed \(seed)")
        }

        /// The request goes out, or its answer comes.
        mutating func serve(_ cycle: inout DrivenLifeCycle, _ chance: inout SeededGenerator) {
            // One task at a time works with the record.
            guard saving == nil, savingLogin == nil else { return }
            if let id = underWay {
                underWay = nil
                let record = cycle.life.answered(id, outcome(cycle, &chance), cycle.moment)
                if let record { saving = (id, record) }
            } else if let fetch = cycle.fetch {
                cycle.fetch = nil
                guard cycle.life.sends(fetch.id, now: cycle.now) else { return }
                if let askedAt { #expect(cycle.now - askedAt >= .seconds(1), "too often, seed \(seed)") }
                askedAt = cycle.now
                underWay = fetch.id
            }
            cycle.collect()
        }

        /// A person logs in at random moments, while no other task works with the record.
        private mutating func logIn(_ cycle: inout DrivenLifeCycle, _ chance: inout SeededGenerator) {
            guard saving == nil, savingLogin == nil, underWay == nil,
                Int.random(in: 0..<10, using: &chance) == 0, case .response(let response) = outcome(cycle, &chance)
            else { return }
            cycle.life.askedForLogin(now: cycle.now)
            let before = cycle.life.token
            let login = try? cycle.life.loggedIn(
                response, as: nil, askedAt: cycle.now, over: UInt64.random(in: 0..<5, using: &chance), cycle.moment)
            cycle.collect()
            if let login { savingLogin = (login.id, login.record, false) }
            #expect(cycle.life.token == before, "not before it is saved, seed \(seed)")
        }

        private mutating func finishLogin(_ cycle: inout DrivenLifeCycle) {
            guard let login = savingLogin else { return }
            savingLogin = nil
            let isUsed = cycle.life.loginSaved(
                login.id, login.record, fault: cycle.chance < 0.7 ? nil : "disk full", cycle.moment(0.5))
            cycle.collect()
            #expect(isUsed == !login.isForgotten, "seed \(seed)")
            guard isUsed else { return }
            #expect(cycle.life.refreshToken == login.record.refreshToken, "seed \(seed)")
            if let token = cycle.life.token { #expect(token.value == login.record.accessToken, "seed \(seed)") }
            // A fetch that was begun before is not sent any more.
            if let fetch = cycle.fetch, fetch.id != cycle.life.fetch?.id { cycle.fetch = nil }
        }

        mutating func finishSaving(_ cycle: inout DrivenLifeCycle) {
            finishLogin(&cycle)
            if let (id, record) = saving {
                saving = nil
                let fault: TokenStoreError? = isGood || cycle.chance < 0.7 ? nil : "disk full"
                cycle.life.saved(id, record, fault: fault, cycle.moment(0.5))
            }
            for record in cycle.resaves {
                cycle.life.resaved(record, fault: isGood || cycle.chance < 0.5 ? nil : "disk full", cycle.moment(0.5))
            }
            cycle.resaves = []
            cycle.collect()
        }

        private mutating func outcome(
            _ cycle: DrivenLifeCycle, _ chance: inout SeededGenerator
        ) -> TokenLifeCycle.Outcome {
            serial += 1
            if isGood { return DrivenLifeCycle.token("T\(serial)", refreshToken: "R\(serial)") }
            switch Int.random(in: 0..<14, using: &chance) {
            case 0: return DrivenLifeCycle.status(500, retryAfter: .seconds(Int.random(in: 0..<10_000, using: &chance)))
            case 1: return .fault(.network(.timeout), retryAfter: nil)
            case 2: return DrivenLifeCycle.refused(.invalidClient)
            case 3: return DrivenLifeCycle.refused(.invalidGrant)
            case 4: return DrivenLifeCycle.status(400)
            case 5: return .fault(.answer(.emptyBody), retryAfter: nil)
            case 6: return DrivenLifeCycle.token("T\(serial)", expiresIn: 0, refreshToken: "R\(serial)")
            case 7: return DrivenLifeCycle.token("T \(serial)", refreshToken: "R\(serial)")
            case 8: return DrivenLifeCycle.token("T\(serial)", expiresIn: 1)
            case 9: return DrivenLifeCycle.token("T\(serial)", expiresIn: 1e18)
            case 10: return .adopted(cycle.record("A\(serial)", refreshToken: "R", revision: cycle.life.revision + 1))
            case 11: return DrivenLifeCycle.token("T\(serial)", expiresIn: nil)
            default: return DrivenLifeCycle.token("T\(serial)", expiresIn: 120, refreshToken: "R\(serial)")
            }
        }
    }
}
