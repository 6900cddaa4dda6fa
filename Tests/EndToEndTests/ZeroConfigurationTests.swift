import Foundation
import TestSupport
import Testing

@Suite("an API that says how to sign in needs no configuration", .timeLimit(.minutes(5)))
struct ZeroConfigurationTests {
    private func client(_ proxy: RunningProxy, _ city: String) async throws -> String {
        let script = "\(Repository.root)/Tests/EndToEndTests/Fixtures/mcp_client.py"
        let process = try await ChildProcess.run(
            [try Repository.python(), script, "http://mcp.test/mcp", city],
            environment: ["http_proxy": "http://127.0.0.1:\(proxy.port)", "https_proxy": nil, "no_proxy": nil])
        guard process.ending == .exited(0) else { throw TestFailure("\(process.transcript)\n\(proxy.log)") }
        return process.output
    }

    private static let initialize = """
        {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},\
        "clientInfo":{"name":"curl","version":"1"}}}
        """
    private static let fields = [
        ("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream"),
    ]

    @Test(
        "an MCP server of PyPI serves its own client after one consent, across token lives and a restart",
        arguments: MCPServer.Kind.allCases)
    func protocolServer(_ kind: MCPServer.Kind) async throws {
        let server = try await MCPServer(kind, tokenSeconds: 16)
        let (folder, browser, port) = (try TemporaryDirectory(), try PlainBrowser(), try freePort())
        let store = "store: {kind: file, directory: \(folder.path)/tokens, key: {file: FOLDER/key}}"
        var proxy = try await RunningProxy.auto(server.url, adminPort: port, more: store)
        let admin = "http://\(try await proxy.administration().address)"

        // Nobody is signed in: the program gets the sign-in's address, and does not see the API's challenge.
        let refused = try await proxy.send("POST", "http://mcp.test/mcp", fields: Self.fields, body: Self.initialize)
        #expect(refused.status == 503)
        #expect(refused.text.contains("\"login_url\":\"\(admin)/login/mcp.test\""))
        #expect(refused.field("WWW-Authenticate") == nil)
        let hidden = try await proxy.get("http://mcp.test/.well-known/oauth-protected-resource/mcp")
        #expect(hidden.status == 404)
        #expect(try await server.registrations() == 0)

        // The page shows the sign-in, and begins it.
        if kind == .fastmcp {
            let person = try Person().does(["enrol", admin, "mcp.test"])
            #expect(try await person.ended(within: .seconds(120)) == .exited(0), "\(person.transcript)\n\(proxy.log)")
            #expect(person.output.contains("API \(server.url)/mcp"))
            #expect(person.output.contains("Authorization server \(server.url)/"))
            #expect(person.output.contains("Scopes user"))
        } else {
            let offer = try await browser.open("\(admin)/login/mcp.test")
            for part in ["\(server.url)/mcp", "\(server.url)/authorize", "will be registered at the sign-in"] {
                #expect(offer.contains(part), "\(part) in \(offer)")
            }
            #expect(try await server.registrations() == 0, "looking changes nothing")
            #expect(try await browser.signIn("mcp.test", at: admin).contains("Signed in"))
        }
        #expect(try await server.registrations() == 1)
        let socket = try await proxy.administration().socket
        let status = try await RunningProxy.run(["status", "--socket", socket]).output
        #expect(status.contains("API: \(server.url)/mcp"), "\(status)")
        #expect(status.contains("client_id: registered"), "\(status)")

        // An unmodified client, and a thousand requests over three lives of the token.
        let answer = try await client(proxy, "Asgard")
        #expect(answer.contains("tools get_weather") && answer.contains("sunny in Asgard"), "\(answer)")
        let end = ContinuousClock.now + .seconds(49)
        var count = 0
        while count < 1000 || ContinuousClock.now < end {
            let answer = try await proxy.send("POST", "http://mcp.test/mcp", fields: Self.fields, body: Self.initialize)
            guard answer.status == 200 else { throw TestFailure("\(answer.status) \(answer.text)\n\(proxy.log)") }
            count += 1
        }

        #expect(try await proxy.terminate() == .exited(0))
        proxy = try await RunningProxy.auto(server.url, adminPort: port, more: store)
        #expect(try await client(proxy, "Vanaheim").contains("sunny in Vanaheim"))
        #expect(try await server.registrations() == 1)
        #expect(proxy.log.contains("somebody has to sign in") == false)
    }

    @Test("five proxies on one database register once; one sign-in serves them all")
    func fleet() async throws {
        let database = try await PostgresServer.shared()
        let (folder, browser, server) = (try TemporaryDirectory(), try PlainBrowser(), try await MCPServer(.mcp))
        try folder.write([UInt8](repeating: 7, count: 32), to: "key")
        try folder.write(database.connection, to: "database")
        let space = "auto-\(UInt32.random(in: .min ... .max))"
        let store =
            "store: {kind: postgres, space: \(space), connection: {file: \(folder.path)/database}, key: {file: \(folder.path)/key}}"
        let file = try folder.write("upstreams: []\nproxy: {unmatched: forward}\n\(store)\n", to: "init.yaml")
        let made = try await RunningProxy.run(["store", "init", "--config", file])
        try #require(made.ending == .exited(0), "\(made.transcript)")
        // All proxies have the same redirect URI, as if they had one name.
        let port = try freePort()
        let redirect = "redirect_uri: http://127.0.0.1:\(port)/callback"
        var proxies: [RunningProxy] = []
        for index in 0..<5 {
            proxies.append(
                try await RunningProxy.auto(server.url, auto: redirect, adminPort: index == 0 ? port : 0, more: store))
        }
        for proxy in proxies {
            #expect(try await proxy.send("POST", "http://mcp.test/mcp", fields: Self.fields, body: "{}").status == 503)
        }
        // Each proxy begins a sign-in at the same time.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for proxy in proxies {
                let socket = try await proxy.administration().socket
                group.addTask {
                    let begun = try await ChildProcess.run([
                        "curl", "-s", "--unix-socket", socket, "-X", "POST",
                        "http://localhost/login/mcp.test?paste=true",
                    ])
                    #expect(begun.output.contains("paste"), "\(begun.transcript)")
                }
            }
            try await group.waitForAll()
        }
        #expect(try await server.registrations() == 1)
        #expect(
            try await browser.signIn("mcp.test", at: "http://127.0.0.1:\(port)").contains("Signed in"))
        for proxy in proxies {
            let answer = try await eventually("the sign-in at each proxy", within: .seconds(20)) {
                let answer = try await proxy.send(
                    "POST", "http://mcp.test/mcp", fields: Self.fields, body: Self.initialize)
                return answer.status == 200 ? answer : nil
            }
            #expect(answer.status == 200)
        }
        #expect(try await server.registrations() == 1)
    }

    @Test("the playground's API needs one line of config.yaml")
    func playground() async throws {
        let browser = try PlainBrowser()
        let text = try String(contentsOfFile: Repository.root + "/config.yaml", encoding: .utf8)
            .replacing("127.0.0.1:8080 ", with: "127.0.0.1:0 ").replacing(
                "127.0.0.1:8081 ", with: "127.0.0.1:0\n  socket: FOLDER/admin.sock ")
        let proxy = try await RunningProxy(text)
        #expect(try await proxy.get("http://auto.playground.test/hello").status == 503)
        let administration = try await proxy.administration()
        let page = try await browser.signIn("auto.playground.test", at: "http://\(administration.address)")
        let ticket = try #require(page.firstMatch(of: /name="ticket" value="([^"]+)"/)?.output.1, "\(page)")
        #expect(page.contains("May heimdallr-proxy act for you?"))
        let issuer = try #require(
            try await RunningProxy.run(["status", "--socket", administration.socket]).output
                .firstMatch(of: /\n  server: (http:\/\/[^,\s]+)/)?.output.1)
        let signedIn = try await browser.send(
            [("ticket", String(ticket)), ("decision", "allow")], to: "\(issuer)/authorize")
        #expect(signedIn.contains("Signed in"), "\(signedIn)\n\(proxy.log)")
        let answer = try await proxy.get("http://auto.playground.test/hello")
        #expect(answer.status == 200)
        #expect(answer.text.contains("The token was accepted"))
        let doctor = try await RunningProxy.run(
            ["doctor", "auto.playground.test", "--config", Repository.root + "/config.yaml"])
        #expect(doctor.output.contains("the API asks for a token, and names its metadata"), "\(doctor.transcript)")
        #expect(doctor.output.contains("will be registered at the sign-in"), "\(doctor.transcript)")
    }

    @Test("an API's words about its own sign-in stay here, unless discovery is passed on")
    func hiding() async throws {
        let origin = try RecordingOrigin { exchange in
            let request = try exchange.readBody()
            let challenge =
                "Bearer error=\"insufficient_scope\", scope=\"write\", resource_metadata=\"https://x.example/d\", Basic realm=\"a, b\""
            guard !request.target.hasPrefix("/.well-known/") else {
                return try exchange.respond(200, fields: [], body: "document")
            }
            try exchange.respond(403, fields: [("WWW-Authenticate", challenge)], body: "no")
        }
        let (hides, passes) = (
            try await RunningProxy.auto(origin.url), try await RunningProxy.auto(origin.url, auto: "discovery: pass")
        )
        let hidden = try await hides.get("http://mcp.test/a")
        #expect(hidden.status == 403)
        #expect(
            hidden.field("WWW-Authenticate")
                == "Bearer error=\"insufficient_scope\", scope=\"write\", basic realm=\"a, b\"")
        let passed = try await passes.get("http://mcp.test/a")
        #expect(passed.field("WWW-Authenticate")?.contains("resource_metadata=\"https://x.example/d\"") == true)
        for path in ["", "/mcp", "?a", ";a"] {
            let url = "http://mcp.test/.well-known/oauth-protected-resource\(path)"
            #expect(try await hides.get(url).status == 404)
            #expect(try await passes.get(url).status == 200)
        }
        #expect(try await hides.get("http://mcp.test//.well-known/%6Fauth-protected-resource").status == 404)
        #expect(try await hides.get("http://mcp.test/.well-known/oauth-protected-resources").status == 200)
        let status = try await RunningProxy.run(["status", "--socket", hides.administration().socket]).output
        _ = try await eventually("the log names the need") { hides.log.contains("more consent needed") ? true : nil }
        #expect(status.contains("wanted: more consent needed: write"), "\(status)")
    }

    @Test("a server that offers nothing asks the person for id and secret, at a form")
    func typed() async throws {
        let (server, browser) = (try await DjangoOAuthToolkit(), try PlainBrowser())
        let api = try publishingAPI(naming: server.issuer)
        let proxy = try await RunningProxy.auto(api.url)
        #expect(try await proxy.get("http://mcp.test/").status == 503)
        let admin = "http://\(try await proxy.administration().address)"
        let page = try await browser.open("\(admin)/login/mcp.test")
        #expect(page.contains("has to be registered by you"), "\(page)")
        #expect(page.contains("\(admin)/callback"))
        let client = DjangoOAuthToolkit.browser
        let typed = try await browser.press(
            "type", on: page, "mcp.test", at: admin,
            typing: [("client_id", client.id), ("client_secret", client.secret)])
        #expect(typed.contains("\(DjangoOAuthToolkit.browser.id), known to the server"), "\(typed)")
        let person = try Person().does(
            ["enrol", admin, "mcp.test", DjangoOAuthToolkit.user.name, DjangoOAuthToolkit.user.password])
        #expect(try await person.ended(within: .seconds(120)) == .exited(0), "\(person.transcript)\n\(proxy.log)")
        #expect(try await proxy.get("http://mcp.test/").text == "welcome")
        #expect(!proxy.log.contains(DjangoOAuthToolkit.browser.secret))
    }

    @Test("rules by field give each tool its policy, without reading a body")
    func fields() async throws {
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: endpoint.url,
                upstreams: ProxyConfiguration.upstream(
                    url: origin.url, "fields: {Mcp-Method: tools/call, Mcp-Name: [get_*, list]}"),
                ProxyConfiguration.upstream(url: origin.url, "fields: {Mcp-Method: [initialize, tools/list]}")))
        func status(_ fields: (String, String)...) async throws -> Int {
            try await proxy.send("POST", "http://api.test/mcp", fields: fields, body: "{}").status
        }
        let call = ("Mcp-Method", "tools/call")
        #expect(try await status(call, ("Mcp-Name", "get_weather")) == 200)
        #expect(try await status(("mcp-method", "tools/call"), ("MCP-NAME", "list")) == 200)
        #expect(try await status(("Mcp-Method", "initialize")) == 200)
        #expect(try await status(call, ("Mcp-Name", "delete_all")) == 403)
        #expect(try await status(call, ("Mcp-Name", "list_all")) == 403)
        #expect(try await status(call, ("Mcp-Name", "GET_weather")) == 403)
        #expect(try await status(call) == 403)
        #expect(try await status() == 403)
        #expect(try await status(call, ("Mcp-Name", "get_a"), ("Mcp-Name", "delete")) == 403, "two fields")
        #expect(
            try await status(call, ("Mcp-Name", "get_a"), ("Connection", "Mcp-Name")) == 403, "one that stays here")
        #expect(origin.requests.count == 3)
        let checked = try await RunningProxy.run(["check", "--config", proxy.directory.path + "/config.yaml"])
        #expect(checked.output.contains("mcp-method: tools/call; mcp-name: get_* or list"), "\(checked.transcript)")
    }
}
