import Heimdallr
import Testing

@testable import Administration

@Suite("logins under way")
struct LoginDeskTests {
    /// No login here asks anybody anything before it is finished.
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
        let desk = LoginDesk()
        let client = try client()
        let (url, cookie) = try await desk.beginAtBrowser(client, redirectURI: redirectURI, ticket: nil)
        let cookies = [cookie.name: cookie.value.revealed]
        let late = ContinuousClock.now + LoginDesk.lifetime + .seconds(1)
        #expect(throws: LoginDesk.Refusal.unknown) {
            try desk.take(state: try state(url), cookies: cookies, now: late)
        }
        #expect(try desk.take(state: try state(url), cookies: cookies).client === client)
        #expect(throws: LoginDesk.Refusal.unknown) { try desk.take(state: try state(url), cookies: cookies) }
    }

    @Test func `a browser can't take what a command has begun, nor spoil it`() async throws {
        let desk = LoginDesk()
        let (ticket, url) = try await desk.beginForCommand(try client(), redirectURI: redirectURI)
        let state = try state(url)
        #expect(throws: LoginDesk.Refusal.commands) { try desk.take(state: state, cookies: [:]) }
        #expect(await desk.finishForCommand(ticket, redirectedTo: "\(redirectURI)?code=x&state=wrong"))
        guard case .failed = desk.ticket(ticket)?.progress else {
            Issue.record("a wrong state passed")
            return
        }
        // It was the one attempt.
        #expect(await !desk.finishForCommand(ticket, redirectedTo: "\(redirectURI)?code=x&state=\(state)"))
    }

    @Test func `what is cancelled can't be finished`() async throws {
        let desk = LoginDesk()
        let (ticket, _) = try await desk.beginForCommand(try client(), redirectURI: redirectURI)
        desk.cancel(ticket)
        #expect(await !desk.finishForCommand(ticket, redirectedTo: redirectURI))
        #expect(desk.ticket(ticket) == nil)
        let opened = try desk.openTicket("api")
        let (url, cookie) = try await desk.beginAtBrowser(try client(), redirectURI: redirectURI, ticket: opened)
        desk.cancel(opened)
        #expect(throws: LoginDesk.Refusal.unknown) {
            try desk.take(state: try state(url), cookies: [cookie.name: cookie.value.revealed])
        }
    }

    @Test func `more logins than there is room for push out the oldest, not the newest`() async throws {
        let desk = LoginDesk()
        let client = try client()
        var begun: [(state: String, cookies: [String: String])] = []
        for _ in 0...LoginDesk.capacity {
            let (url, cookie) = try await desk.beginAtBrowser(client, redirectURI: redirectURI, ticket: nil)
            begun.append((try state(url), [cookie.name: cookie.value.revealed]))
        }
        #expect(throws: LoginDesk.Refusal.unknown) { try desk.take(state: begun[0].state, cookies: begun[0].cookies) }
        #expect(throws: Never.self) {
            try desk.take(state: begun[LoginDesk.capacity].state, cookies: begun[LoginDesk.capacity].cookies)
        }
        var passes: [String] = []
        for _ in 0...LoginDesk.capacity { passes.append(try #require(desk.newPass())) }
        #expect(!desk.spendPass(passes[0]))
        #expect(desk.spendPass(passes[1]))
        #expect(!desk.spendPass(passes[1]))
        #expect(!desk.spendPass(nil))
    }
}
