import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `A login on another device` {
    private static let codes = #"""
        {"device_code":"D+1","user_code":"WDJB-MJHT","verification_uri":"https://idp.example.com/device","interval":5,
        "verification_uri_complete":"https://idp.example.com/device?user_code=WDJB-MJHT","expires_in":600}
        """#

    private func refused(_ code: String) -> LoginServer.Reply { .json(#"{"error":"\#(code)"}"#, status: 400) }

    /// A login under way, at a server that says `pending`.
    private func begin(
        _ change: (inout HeimdallrConfiguration) -> Void = { _ in }
    ) async throws -> (server: LoginServer, client: Heimdallr, login: DeviceLogin, clock: ManualClock) {
        let server = try LoginServer()
        server["/device"] = .json(Self.codes)
        server["/token"] = refused("authorization_pending")
        let clock = ManualClock()
        let client = try server.client(.device, clock: clock.clock, change)
        return (server, client, try await client.beginDeviceLogin(), clock)
    }

    /// Time passes until the server was asked so many times.
    private func ask(_ count: Int, _ server: LoginServer, _ clock: ManualClock, every: Duration) async throws {
        _ = try await eventually("question \(count)") {
            if server.requests("/token").count >= count { return true }
            clock.advance(by: every)
            return nil
        }
    }

    @Test("a device login shows the codes, asks at the server's pace, and takes the token up")
    func whole() async throws {
        let (server, client, login, clock) = try await begin {
            $0.scope = ["read", "write"]
            $0.audience = "urn:a"
        }
        let form = ReadQuery(query: try #require(server.requests("/device").first).text)
        #expect(form["client_id"] == "app")
        #expect(form["scope"] == "read write")
        #expect(form["audience"] == "urn:a")
        #expect(login.userCode == "WDJB-MJHT")
        #expect(login.verificationURI == "https://idp.example.com/device")
        #expect(login.verificationURIComplete?.hasSuffix("WDJB-MJHT") == true)
        #expect(login.interval == .seconds(5))
        #expect("\(login)" == "<redacted>")
        let waiting = Task { try await client.finishDeviceLogin(login) }
        try await ask(2, server, clock, every: .seconds(1))
        #expect(client.currentToken() == nil)
        server.giveToken()
        try await ask(3, server, clock, every: .seconds(1))
        try await waiting.value
        #expect(client.currentToken()?.value == Secret("T1"))
        let asked = ReadQuery(query: try #require(server.requests("/token").last).text)
        #expect(asked["grant_type"] == "urn:ietf:params:oauth:grant-type:device_code")
        #expect(asked["device_code"] == "D+1")
        #expect(asked["client_id"] == "app")
    }

    @Test("a device login is not asked for before the interval has passed")
    func pace() async throws {
        let (server, client, login, clock) = try await begin()
        let waiting = Task { try await client.finishDeviceLogin(login) }
        try await eventually("it sleeps") { clock.sleepers > 0 }
        let sleepers = clock.sleepers
        clock.advance(by: .milliseconds(4900))
        #expect(clock.sleepers == sleepers)
        #expect(server.requests("/token").isEmpty)
        waiting.cancel()
        await #expect(throws: LoginError.cancelled) { try await waiting.value }
    }

    @Test("a server that is away and comes back is asked until it answers")
    func away() async throws {
        let (server, client, login, clock) = try await begin()
        let waiting = Task { try await client.finishDeviceLogin(login) }
        server["/token"] = LoginServer.Reply(closes: true)
        try await ask(1, server, clock, every: .seconds(2))
        server["/token"] = LoginServer.Reply(status: 503)
        try await ask(2, server, clock, every: .seconds(2))
        server.giveToken()
        try await ask(3, server, clock, every: .seconds(2))
        try await waiting.value
        #expect(client.hasAccessToken)
    }

    @Test("a device login ends with the codes' time, with the server's refusal, or with the client")
    func ends() async throws {
        for (code, error) in [
            ("expired_token", LoginError.expired),
            ("access_denied", .refused(OAuthError(status: 400, code: .accessDenied))),
        ] {
            let (server, client, login, clock) = try await begin()
            server["/token"] = refused(code)
            let waiting = Task { try await client.finishDeviceLogin(login) }
            try await ask(1, server, clock, every: .seconds(1))
            await #expect(throws: error) { try await waiting.value }
        }
        let (server, client, login, clock) = try await begin()
        let waiting = Task { try await client.finishDeviceLogin(login) }
        clock.advance(by: .seconds(600))
        await #expect(throws: LoginError.expired) { try await waiting.value }
        #expect(server.requests("/token").isEmpty)
        let ended = Recorder<Bool>()
        let stopped = Task {
            defer { ended.append(true) }
            try await client.finishDeviceLogin(try await client.beginDeviceLogin())
        }
        _ = try await eventually("codes") { server.requests("/device").count == 2 ? true : nil }
        client.shutdown()
        try await eventually("its end") {
            clock.advance(by: .seconds(1))
            return !ended.all.isEmpty
        }
        await #expect(throws: LoginError.stopped) { try await stopped.value }
    }

    @Test("a server without device logins, or with none of use, is told at once")
    func unusable() async throws {
        let server = try LoginServer()
        server["/device"] = .json("{}")
        let client = try server.client(.device)
        await #expect(throws: LoginError.endpoint(.answer(.notAnObject))) { try await client.beginDeviceLogin() }
        server["/device"] = refused("unauthorized_client")
        await #expect(throws: LoginError.refused(OAuthError(status: 400, code: .unauthorizedClient))) {
            try await client.beginDeviceLogin()
        }
        server[LoginServer.wellKnown] = .json(server.metadata(leavingOut: ["device_authorization_endpoint"]))
        await #expect(throws: LoginError.noEndpoint("device_authorization_endpoint")) {
            try await server.client(.device).beginDeviceLogin()
        }
        await #expect(throws: LoginError.wrongMethod) { try await server.client(.browser).beginDeviceLogin() }
    }

    @Test("a password login sends what was typed once, and keeps only the tokens")
    func password() async throws {
        let server = try LoginServer()
        server.giveToken()
        let store = RecordingStore()
        let client = try server.client(.password, store: store) { $0.scope = ["read"] }
        client.start()
        #expect(try await client.refusal() == .needsAuthentication)
        try await client.login(username: "ada", password: Secret("p w"))
        let form = ReadQuery(query: try #require(server.requests("/token").first).text)
        #expect(form["grant_type"] == "password")
        #expect(form["username"] == "ada")
        #expect(form["password"] == "p w")
        #expect(form["scope"] == "read")
        client.invalidateAccessToken()
        _ = try await client.accessToken(waiting: .seconds(10))
        #expect(ReadQuery(query: server.requests("/token")[1].text)["grant_type"] == "refresh_token")
        server["/token"] = .json(
            #"{"error":"invalid_grant","error_description":"p w is wrong"}"#, status: 400)
        await #expect(
            throws: LoginError.refused(OAuthError(status: 400, code: .invalidGrant, detail: "<redacted> is wrong"))
        ) { try await client.login(username: "ada", password: Secret("p w")) }
        #expect(client.hasAccessToken, "what was there stays")
    }
}
