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
        "whatever happens: one fetch at a time, one a second, no bad token, one outcome each, and recovery",
        arguments: 0..<60)
    func anything(seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        let needs = [GrantNeeds.nobody, .freshSeed, .person][Int(seed % 3)]
        var rig = LifeCycleRig(needs: needs)
        rig.start(stored: rig.record(nil, refreshToken: "R0"))
        var world = World(seed: seed)
        for _ in 0..<1500 {
            rig.chance = Double.random(in: 0..<1, using: &chance)
            world.step(&rig, &chance)
        }
        // The server behaves from here on.
        world.isGood = true
        world.finishSaving(&rig)
        if needs == .person, rig.life.refreshToken == nil { return }
        var waited = 0.0
        while rig.life.token == nil, waited < 4000 {
            rig.wait(1)
            world.serve(&rig, &chance)
            rig.pass(0.5)
            waited += 0.5
            world.serve(&rig, &chance)
            world.finishSaving(&rig)
        }
        #expect(rig.life.token != nil, "no recovery with seed \(seed)")
        #expect(rig.outcomes.count >= world.waits - rig.life.waiters.count)
        rig.pass(100)
        #expect(rig.life.waiters.isEmpty)
    }

    /// Everything around the life cycle.
    struct World {
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

        mutating func step(_ rig: inout LifeCycleRig, _ chance: inout SeededGenerator) {
            switch Int.random(in: 0..<14, using: &chance) {
            case 0, 1:
                rig.wait(Double.random(in: 0..<20, using: &chance))
                waits += 1
            case 2, 3: check(rig.life.use(now: rig.now, random: { 0.5 }), rig)
            case 4 where Int.random(in: 0..<4, using: &chance) == 0:
                if let token = rig.life.token {
                    rejected.insert(token.generation)
                    rig.reject(token.generation)
                }
            case 5 where Int.random(in: 0..<20, using: &chance) == 0:
                rig.life.clear(now: rig.now, random: { 0.5 })
                savingLogin?.isForgotten = true
            case 6:
                if let id = rig.life.waiters.keys.randomElement(using: &chance) { rig.life.leave(id) }
            case 7, 8, 9: serve(&rig, &chance)
            case 10: finishSaving(&rig)
            case 11: logIn(&rig, &chance)
            case 12 where Int.random(in: 0..<4, using: &chance) == 0:
                rig.life.refreshNow(now: rig.now, random: { 0.5 })
            default: rig.pass([0.01, 0.1, 0.9, 1, 5, 60, 900][Int.random(in: 0..<7, using: &chance)])
            }
            rig.collect()
            if let wake = rig.life.nextWake, wake <= rig.now {
                rig.life.tick(now: rig.now, random: { 0.5 })
                rig.collect()
                if let wake = rig.life.nextWake { #expect(wake > rig.now, "an alarm without end, seed \(seed)") }
            }
            check(rig.life.tokenInUse(now: rig.now), rig)
            for outcome in rig.outcomes.values {
                if case .success(let token) = outcome { #expect(!token.value.isEmpty) }
            }
            if rig.outcomes.count > 50 {
                rig.outcomes = rig.outcomes.filter { $0.key > rig.nextWaiter - 10 }
                waits = 0
            }
        }

        private func check(_ token: AccessToken?, _ rig: LifeCycleRig) {
            guard let token else { return }
            #expect(!token.isExpired(at: rig.now), "an expired token, seed \(seed)")
            #expect(!rejected.contains(token.generation), "a rejected token, seed \(seed)")
        }

        /// The request goes out, or its answer comes.
        mutating func serve(_ rig: inout LifeCycleRig, _ chance: inout SeededGenerator) {
            // Whoever works with the record works alone.
            guard saving == nil, savingLogin == nil else { return }
            if let id = underWay {
                underWay = nil
                let record = rig.life.answered(
                    id, outcome(rig, &chance), now: rig.now, wallClock: rig.wall,
                    random: { [chance = rig.chance] in chance })
                if let record { saving = (id, record) }
            } else if let fetch = rig.fetch {
                rig.fetch = nil
                guard rig.life.began(fetch.id, now: rig.now) else { return }
                if let askedAt { #expect(rig.now - askedAt >= .seconds(1), "too often, seed \(seed)") }
                askedAt = rig.now
                underWay = fetch.id
            }
            rig.collect()
        }

        /// Somebody logs in, now and then, while nobody else works with the record.
        private mutating func logIn(_ rig: inout LifeCycleRig, _ chance: inout SeededGenerator) {
            guard saving == nil, savingLogin == nil, underWay == nil,
                Int.random(in: 0..<10, using: &chance) == 0, case .response(let response) = outcome(rig, &chance)
            else { return }
            rig.life.askedForLogin(now: rig.now)
            let before = rig.life.token
            let login = try? rig.life.loggedIn(
                response, as: nil, askedAt: rig.now, over: UInt64.random(in: 0..<5, using: &chance), now: rig.now,
                wallClock: rig.wall)
            rig.collect()
            if let login { savingLogin = (login.id, login.record, false) }
            #expect(rig.life.token == before, "not before it is saved, seed \(seed)")
        }

        private mutating func finishLogin(_ rig: inout LifeCycleRig) {
            guard let login = savingLogin else { return }
            savingLogin = nil
            let isUsed = rig.life.loginSaved(
                login.id, login.record, fault: rig.chance < 0.7 ? nil : "disk full", now: rig.now, random: { 0.5 })
            rig.collect()
            #expect(isUsed == !login.isForgotten, "seed \(seed)")
            guard isUsed else { return }
            #expect(rig.life.refreshToken == login.record.refreshToken, "seed \(seed)")
            if let token = rig.life.token { #expect(token.value == login.record.accessToken, "seed \(seed)") }
            // A fetch that was begun before is not sent any more.
            if let fetch = rig.fetch, fetch.id != rig.life.fetch?.id { rig.fetch = nil }
        }

        mutating func finishSaving(_ rig: inout LifeCycleRig) {
            finishLogin(&rig)
            if let (id, record) = saving {
                saving = nil
                let fault = isGood || rig.chance < 0.7 ? nil : "disk full"
                rig.life.saved(id, record, fault: fault, now: rig.now, random: { 0.5 })
            }
            for record in rig.resaves {
                rig.life.resaved(
                    record, fault: isGood || rig.chance < 0.5 ? nil : "disk full", now: rig.now, random: { 0.5 })
            }
            rig.resaves = []
            rig.collect()
        }

        private mutating func outcome(
            _ rig: LifeCycleRig, _ chance: inout SeededGenerator
        ) -> TokenLifeCycle.Outcome {
            serial += 1
            if isGood { return LifeCycleRig.token("T\(serial)", refreshToken: "R\(serial)") }
            switch Int.random(in: 0..<14, using: &chance) {
            case 0: return LifeCycleRig.status(500, retryAfter: .seconds(Int.random(in: 0..<10_000, using: &chance)))
            case 1: return .fault(.network(.timeout), retryAfter: nil)
            case 2: return LifeCycleRig.refused(.invalidClient)
            case 3: return LifeCycleRig.refused(.invalidGrant)
            case 4: return LifeCycleRig.status(400)
            case 5: return .fault(.answer(.emptyBody), retryAfter: nil)
            case 6: return LifeCycleRig.token("T\(serial)", expiresIn: 0, refreshToken: "R\(serial)")
            case 7: return LifeCycleRig.token("T \(serial)", refreshToken: "R\(serial)")
            case 8: return LifeCycleRig.token("T\(serial)", expiresIn: 1)
            case 9: return LifeCycleRig.token("T\(serial)", expiresIn: 1e18)
            case 10: return .adopted(rig.record("A\(serial)", refreshToken: "R", revision: rig.life.revision + 1))
            case 11: return LifeCycleRig.token("T\(serial)", expiresIn: nil)
            default: return LifeCycleRig.token("T\(serial)", expiresIn: 120, refreshToken: "R\(serial)")
            }
        }
    }
}
