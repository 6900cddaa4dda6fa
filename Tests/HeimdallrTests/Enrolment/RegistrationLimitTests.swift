import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `Limits of registrations` {
    @Test("each issuer gets one registration an hour; a lost client is registered anew at once, but not twice")
    func pauses() {
        var registrations = Registrations()
        func wait(_ now: Int64, at issuer: String = "a", isLost: Bool = false) -> Int64 {
            registrations.wait(at: issuer, replacing: isLost, now: now)
        }
        #expect(wait(0) == 0)
        registrations.succeeded(at: "a", replacing: false, now: 1000)
        registrations.succeeded(at: "b", replacing: false, now: 1100)
        #expect(wait(1000) == 3600, "the other issuer does not replace it")
        #expect(wait(1100, at: "b") == 3600)
        #expect(wait(4600) == 0)
        #expect(wait(0) == 0, "the clock was set back")
        #expect(wait(1200, isLost: true) == 0)
        registrations.succeeded(at: "a", replacing: true, now: 1200)
        #expect(wait(1200, isLost: true) == 3600)
        registrations.succeeded(at: "a", replacing: true, now: 4800)
        #expect(wait(4800, isLost: true) == 0)
    }

    @Test("failed registrations count, with a minute after the first one, doubled up to an hour")
    func failures() {
        var registrations = Registrations()
        for pause: Int64 in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
            registrations.failed(at: "a", now: 0)
            #expect(registrations.wait(at: "a", replacing: true, now: 0) == pause)
        }
        registrations.succeeded(at: "a", replacing: false, now: 9000)
        registrations.failed(at: "a", now: 9000)
        #expect(registrations.wait(at: "a", replacing: false, now: 9000) == 60)
    }

    @Test("an API with ever new issuers gets sixteen registrations an hour, and no more memory")
    func bound() {
        var registrations = Registrations()
        for issuer in 0..<Registrations.maxIssuers {
            #expect(registrations.wait(at: "\(issuer)", replacing: false, now: Int64(issuer)) == 0)
            registrations.succeeded(at: "\(issuer)", replacing: false, now: Int64(issuer))
        }
        #expect(registrations.wait(at: "next", replacing: false, now: 20) == 3580)
        #expect(registrations.wait(at: "next", replacing: false, now: 3600) == 0)
        for issuer in 0..<100 { registrations.failed(at: "more \(issuer)", now: 30) }
        #expect(registrations.entries.count == Registrations.maxIssuers)
    }

    @Test("registrations of another process on the store count, too")
    func fleet() {
        var (mine, other) = (Registrations(), Registrations())
        mine.succeeded(at: "a", replacing: false, now: 50)
        other.succeeded(at: "a", replacing: false, now: 40)
        other.succeeded(at: "b", replacing: false, now: 40)
        mine.add(other)
        #expect(mine.wait(at: "a", replacing: false, now: 50) == 3600)
        #expect(mine.wait(at: "b", replacing: false, now: 50) == 3590)
    }

    /// The fault of a sign-in's first half; `nil`: it began.
    private func fault(_ client: Heimdallr) async throws -> DiscoveryFault? {
        do { _ = try await client.beginLogin(redirectURI: LoginServer.callback) } catch LoginError.discovery(let fault)
        {
            return fault
        }
        return nil
    }

    @Test("an API that names three issuers in turn does not make the proxy register at each turn")
    func turns() async throws {
        let (one, two, three) = (try EnrollingServer(), try EnrollingServer(), try EnrollingServer())
        let clock = ManualClock()
        let client = try one.client(clock: clock.clock)
        func name(_ issuer: String) {
            one.publish(issuers: [issuer])
            client.challenged(ResourceChallenge(url: one.api), hadToken: true)
            clock.advance(by: .seconds(2))
        }
        for _ in 0..<3 {
            for server in [one, two, three] {
                name(server.issuer)
                _ = try await fault(client)
            }
        }
        #expect([one, two, three].allSatisfy { $0.registrations == 1 })
        name(two.issuer)
        guard case .registeredLately? = try await fault(client) else { throw TestFailure("no limit") }
    }

    @Test("a failed registration is not repeated at once, and the reason stays visible")
    func failing() async throws {
        let (api, clock) = (try EnrollingServer(), ManualClock())
        api.server[EnrollingServer.registration] = .json("{}", status: 500)
        let client = try api.client(clock: clock.clock)
        #expect(try await fault(client) == .registration("it answered 500"))
        for _ in 0..<5 {
            #expect(try await fault(client) == .registration("it answered 500 (the server is asked again after 60 s)"))
        }
        #expect(api.registrations == 1)
        api.server[EnrollingServer.registration] = .json(#"{"client_id":"registered-1"}"#, status: 201)
        clock.advance(by: .seconds(60))
        #expect(try await fault(client) == nil)
        try await client.forgetRegistration(redirectURI: LoginServer.callback)
        api.server[EnrollingServer.registration] = .json(#"{"client_id":"registered-2"}"#, status: 201)
        #expect(try await fault(client) == nil)
        try await client.forgetRegistration(redirectURI: LoginServer.callback)
        #expect(try await fault(client) == .registeredLately(.seconds(3600)), "the former reason is over")
    }

    @Test("a client whose secret has expired is registered anew, once, then after an hour")
    func expired() async throws {
        let (api, clock) = (try EnrollingServer(), ManualClock())
        let client = try api.client(clock: clock.clock)
        func register() async throws -> DiscoveryFault? {
            let end = clock.clock.wallClock() + 100
            api.server[EnrollingServer.registration] = .json(
                #"{"client_id":"r","client_secret":"s","client_secret_expires_at":\#(end)}"#, status: 201)
            return try await fault(client)
        }
        for count in [1, 1, 2] {
            #expect(try await register() == nil)
            #expect(api.registrations == count)
            clock.advance(by: .seconds(60))
        }
        clock.advance(by: .seconds(60))
        guard case .registeredLately? = try await register() else { throw TestFailure("no limit") }
        clock.advance(by: .seconds(3600))
        #expect(try await register() == nil)
        #expect(api.registrations == 3)
    }
}
