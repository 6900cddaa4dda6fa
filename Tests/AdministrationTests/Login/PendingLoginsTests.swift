import Heimdallr
import Testing

@testable import Administration

@Suite("logins under way")
struct PendingLoginsTests {
    /// No login here sends a request before it is finished.
    private struct NoNetwork: HeimdallrHTTPClient {
        func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse {
            throw HeimdallrHTTPClientError.connect
        }
    }

    private let redirectURI = "http://127.0.0.1:8081/callback"

    private func client(_ name: String = "api") throws -> Heimdallr {
        var configuration = HeimdallrConfiguration(tokenEndpoint: "https://idp.example.com/token")
        configuration.authorizationEndpoint = "https://idp.example.com/authorize"
        return try Heimdallr(
            name: name, configuration: configuration, credentials: OAuthClientSecretCredentials(identifier: "c"),
            grant: InteractiveGrant(), httpClient: NoNetwork())
    }

    private func state(_ url: String) throws -> String {
        String(try #require(url.firstMatch(of: /[?&]state=([^&]+)/)?.1))
    }

    @Test func `a state is good for ten minutes, for its browser, and once`() async throws {
        let logins = PendingLogins()
        let client = try client()
        let (url, cookie) = try await logins.beginAtBrowser(client, redirectURI: redirectURI, ticket: nil)
        let cookies = [cookie.name: cookie.value.revealed]
        let late = ContinuousClock.now + LoginAttempts.lifetime + .seconds(1)
        #expect(throws: LoginAttempts.Refusal.unknown) {
            try logins.take(state: try state(url), cookies: cookies, now: late)
        }
        #expect(try logins.take(state: try state(url), cookies: cookies).client === client)
        #expect(throws: LoginAttempts.Refusal.unknown) { try logins.take(state: try state(url), cookies: cookies) }
    }

    @Test func `a browser can't take what a command has begun, nor spoil it`() async throws {
        let logins = PendingLogins()
        let (ticket, url) = try await logins.beginForCommand(try client(), redirectURI: redirectURI)
        let state = try state(url)
        #expect(throws: LoginAttempts.Refusal.commands) { try logins.take(state: state, cookies: [:]) }
        #expect(await logins.finishForCommand(ticket, redirectedTo: "\(redirectURI)?code=x&state=wrong"))
        // A wrong answer is complained of, and the next one may be right.
        #expect(logins.ticket(ticket)?.progress == .waiting)
        #expect(logins.ticket(ticket)?.complaint?.contains("does not belong to this login") == true)
        #expect(await logins.finishForCommand(ticket, redirectedTo: "\(redirectURI)?code=x&state=\(state)"))
        guard case .failed = logins.ticket(ticket)?.progress else {
            Issue.record("a login without a server passed")
            return
        }
        #expect(await !logins.finishForCommand(ticket, redirectedTo: "\(redirectURI)?code=x&state=\(state)"))
    }

    @Test func `a sign-in that was cancelled can't be finished`() async throws {
        let logins = PendingLogins()
        let (ticket, _) = try await logins.beginForCommand(try client(), redirectURI: redirectURI)
        logins.cancel(ticket)
        #expect(await !logins.finishForCommand(ticket, redirectedTo: redirectURI))
        #expect(logins.ticket(ticket) == nil)
        let opened = try logins.openTicket("api")
        let (url, cookie) = try await logins.beginAtBrowser(try client(), redirectURI: redirectURI, ticket: opened)
        logins.cancel(opened)
        #expect(throws: LoginAttempts.Refusal.unknown) {
            try logins.take(state: try state(url), cookies: [cookie.name: cookie.value.revealed])
        }
    }

    @Test func `more logins than there is room for push out the oldest, not the newest`() async throws {
        let logins = PendingLogins()
        let client = try client()
        var begun: [(state: String, cookies: [String: String])] = []
        for _ in 0...LoginAttempts.capacity {
            let (url, cookie) = try await logins.beginAtBrowser(client, redirectURI: redirectURI, ticket: nil)
            begun.append((try state(url), [cookie.name: cookie.value.revealed]))
        }
        #expect(throws: LoginAttempts.Refusal.unknown) {
            try logins.take(state: begun[0].state, cookies: begun[0].cookies)
        }
        #expect(throws: Never.self) {
            try logins.take(state: begun[LoginAttempts.capacity].state, cookies: begun[LoginAttempts.capacity].cookies)
        }
        var passes: [String] = []
        for _ in 0...LoginAttempts.capacity { passes.append(try #require(logins.newPass())) }
        #expect(!logins.spendPass(passes[0]))
        #expect(logins.spendPass(passes[1]))
        #expect(!logins.spendPass(passes[1]))
        #expect(!logins.spendPass(nil))
    }
}
