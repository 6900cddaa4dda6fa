import Synchronization
import TestSupport
import Testing

@Suite("what a person agreed to at the page is what is done", .timeLimit(.minutes(2)))
struct ZeroConfigurationConsentTests {
    /// An API that names one of two servers. Each challenge names the document of the present one.
    private final class FickleAPI: Sendable {
        private let isSecond = Mutex(false)

        func origin(_ issuers: [String]) throws -> RecordingOrigin {
            try RecordingOrigin { [self] exchange in
                let request = try exchange.readBody()
                let address = "http://\(request.field("Host") ?? "")"
                if request.target.hasPrefix("/.well-known/") {
                    return try exchange.respond(
                        200, fields: [("Content-Type", "application/json")],
                        body: #"{"resource":"\#(address)","authorization_servers":["\#(issuers[index])"]}"#)
                }
                if request.field("Authorization") != nil { return try exchange.respond(200, fields: [], body: "hi") }
                let document = "\(address)/.well-known/oauth-protected-resource?\(index)"
                try exchange.respond(
                    401, fields: [("WWW-Authenticate", "Bearer resource_metadata=\"\(document)\"")], body: "")
            }
        }

        private var index: Int { isSecond.withLock { $0 ? 1 : 0 } }
        func move() { isSecond.withLock { $0 = true } }
    }

    /// An authorization server that answers each request at the browser with a code.
    private func server(registers: Bool) throws -> RecordingOrigin {
        try RecordingOrigin { exchange in
            let request = try exchange.readBody()
            let address = "http://\(request.field("Host") ?? "")"
            func json(_ body: String) throws {
                try exchange.respond(200, fields: [("Content-Type", "application/json")], body: body)
            }
            switch request.target.prefix(while: { $0 != "?" }) {
            case "/.well-known/oauth-authorization-server":
                let registration = registers ? #""registration_endpoint":"\#(address)/register","# : ""
                try json(
                    #"{"issuer":"\#(address)","authorization_endpoint":"\#(address)/authorize",\#(registration)"#
                        + #""token_endpoint":"\#(address)/token","code_challenge_methods_supported":["S256"]}"#)
            case "/register": try json(#"{"client_id":"registered"}"#)
            case "/authorize":
                let state = request.target.firstMatch(of: /state=([^&]+)/)?.output.1 ?? ""
                let callback = request.target.firstMatch(of: /redirect_uri=([^&]+)/)?.output.1 ?? ""
                let target = callback.replacing("%3A", with: ":").replacing("%2F", with: "/")
                try exchange.respond(302, fields: [("Location", "\(target)?code=C&state=\(state)")], body: "")
            case "/token": try json(#"{"access_token":"T","token_type":"Bearer","expires_in":3600}"#)
            default: try exchange.respond(404, fields: [], body: "")
            }
        }
    }

    /// Requests of a sign-in.
    private func changes(_ server: RecordingOrigin) -> [String] {
        server.requests.map { String($0.target.prefix { $0 != "?" }) }.filter { !$0.hasPrefix("/.well-known/") }
    }

    @Test(
        "after another server was named neither Continue nor a typed secret reaches it unseen",
        arguments: [true, false])
    func moved(registers: Bool) async throws {
        let (first, second) = (try server(registers: registers), try server(registers: registers))
        let fickle = FickleAPI()
        let api = try fickle.origin([first.url, second.url])
        let proxy = try await RunningProxy.auto(api.url)
        let (admin, browser) = ("http://\(try await proxy.administration().address)", try PlainBrowser())
        #expect(try await proxy.get("http://mcp.test/").status == 503)
        let shown = try await browser.open("\(admin)/login/mcp.test")
        #expect(shown.contains("\(first.url)/authorize") && !shown.contains("have changed"), "\(shown)")
        fickle.move()
        #expect(try await proxy.get("http://mcp.test/").status == 503)
        #expect(try await browser.open(admin).contains("2 × 503 by the proxy itself"))
        func press(on page: String) async throws -> String {
            registers
                ? try await browser.press("go", on: page, "mcp.test", at: admin)
                : try await browser.press(
                    "type", on: page, "mcp.test", at: admin,
                    typing: [("client_id", "mine"), ("client_secret", "s3cret")])
        }
        let again = try await press(on: shown)
        #expect(
            again.contains("documents have changed: the authorization server, the server’s endpoints"), "\(again)")
        #expect(again.contains("\(second.url)/authorize"))
        #expect(changes(first) == [] && changes(second) == [])
        // The person looks, and agrees.
        var page = try await press(on: again)
        if !registers { page = try await browser.press("go", on: page, "mcp.test", at: admin) }
        #expect(page.contains("Signed in"), "\(page)")
        #expect(changes(second) == (registers ? ["/register"] : []) + ["/authorize", "/token"])
        #expect(changes(first) == [])
        #expect(try await proxy.get("http://mcp.test/").text == "hi")
    }

    @Test("the page shows the demands of the API about the sign-in, and the browser carries them to the server")
    func demands() async throws {
        let server = try server(registers: true)
        let api = try publishingAPI(
            naming: server.url,
            challenge: {
                #"Bearer error="insufficient_user_authentication", acr_values="mfa hw", max_age="60", "#
                    + #"resource_metadata="\#($0)""#
            })
        let proxy = try await RunningProxy.auto(api.url)
        let (admin, browser) = ("http://\(try await proxy.administration().address)", try PlainBrowser())
        #expect(try await proxy.get("http://mcp.test/").status == 503)
        let shown = try await browser.open("\(admin)/login/mcp.test")
        let row = "<dt>The API wants</dt><dd>a sign-in of the kind “mfa hw”, a sign-in in the last 60 s</dd>"
        #expect(shown.contains(row), "\(shown)")
        #expect(try await browser.press("go", on: shown, "mcp.test", at: admin).contains("Signed in"))
        let address = try #require(server.requests.first { $0.target.hasPrefix("/authorize") }).target
        #expect(address.contains("max_age=60") && address.contains("acr_values=mfa"), "\(address)")
    }

    @Test("a link, another site's form, or a form without the page's token begins no sign-in")
    func links() async throws {
        let server = try server(registers: true)
        let api = try FickleAPI().origin([server.url])
        let proxy = try await RunningProxy.auto(api.url)
        let (admin, browser) = ("http://\(try await proxy.administration().address)", try PlainBrowser())
        #expect(try await proxy.get("http://mcp.test/").status == 503)
        for rest in ["?go=true", "?do=go", ""] {
            #expect(try await browser.open("\(admin)/login/mcp.test\(rest)").contains("Continue"))
        }
        let shown = try await browser.open("\(admin)/login/mcp.test")
        let foreign = try await PlainBrowser().press("go", on: shown, "mcp.test", at: admin)
        #expect(!foreign.contains("Signed in"), "another browser's form")
        let bare = try await browser.send([("do", "go")], to: "\(admin)/client/mcp.test", from: admin)
        #expect(!bare.contains("Signed in"))
        let csrf = String(try #require(shown.firstMatch(of: /name="csrf" value="([^"]+)"/)?.output.1))
        let blind = try await browser.send(
            [("csrf", csrf), ("do", "go")], to: "\(admin)/client/mcp.test", from: admin)
        #expect(blind.contains("documents have changed"), "a form without an offer: \(blind)")
        #expect(changes(server) == [])
        #expect(try await browser.press("go", on: shown, "mcp.test", at: admin).contains("Signed in"))
    }

    @Test("the waiting command learns of the sign-in at the page")
    func command() async throws {
        let server = try server(registers: true)
        let api = try FickleAPI().origin([server.url])
        let proxy = try await RunningProxy.auto(api.url)
        let (administration, browser) = (try await proxy.administration(), try PlainBrowser())
        let admin = "http://\(administration.address)"
        func ask(_ method: String, _ path: String) async throws -> String {
            try await ChildProcess.output(of: [
                "curl", "-s", "--unix-socket", administration.socket, "-X", method, "http://localhost/login/\(path)",
            ])
        }
        #expect(try await proxy.get("http://mcp.test/").status == 503)
        // With a token, the command waits for its own sign-in only.
        #expect(try await browser.signIn("mcp.test", at: admin).contains("Signed in"))
        let begun = try await ask("POST", "mcp.test")
        let ticket = String(try #require(begun.firstMatch(of: /"ticket": ?"([^"]+)"/)?.output.1, "\(begun)"))
        let shown = try await browser.open("\(admin)/login/mcp.test?ticket=\(ticket)")
        #expect(try await ask("GET", "mcp.test/\(ticket)").contains("waiting"))
        #expect(try await browser.press("go", on: shown, "mcp.test", at: admin).contains("Signed in"))
        #expect(try await ask("GET", "mcp.test/\(ticket)").contains("done"))
    }
}
