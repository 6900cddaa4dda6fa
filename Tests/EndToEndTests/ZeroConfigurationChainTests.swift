import TestSupport
import Testing

@Suite("the chain from an API to its server, with real servers and broken links", .timeLimit(.minutes(3)))
struct ZeroConfigurationChainTests {
    @Test(
        "an issuer with a path is found at any of three addresses, signed in at once, and refreshed by itself",
        arguments: PathIssuers.Kind.allCases)
    func paths(_ kind: PathIssuers.Kind) async throws {
        let servers = try await PathIssuers(kind, tokenSeconds: 4)
        let others = PathIssuers.Form.allCases.dropFirst().map {
            "  - {host: \($0).test, url: \"\(servers.api($0))\", client: auto, allow_plaintext: true}"
        }
        let proxy = try await RunningProxy.auto(servers.api(.oauth), more: others.joined(separator: "\n"))
        let (admin, browser) = (try await proxy.administration(), try PlainBrowser())
        for form in PathIssuers.Form.allCases {
            let host = form == .oauth ? "mcp.test" : "\(form).test"
            #expect(try await proxy.get("http://\(host)/").status == 503)
            let offer = try await browser.open("http://\(admin.address)/login/\(host)")
            #expect(offer.contains("\(servers.issuer(form))/authorize"), "\(offer)")
            let done = try await browser.signIn(host, at: "http://\(admin.address)")
            #expect(done.contains("Signed in"), "\(done)\n\(proxy.log)")
            #expect(try await proxy.get("http://\(host)/").text == "welcome to \(form)")
        }
        let status = try await RunningProxy.run(["status", "--socket", admin.socket]).output
        for form in PathIssuers.Form.allCases {
            #expect(status.contains("server: \(servers.issuer(form)),"), "\(status)")
        }
        // Three lives of each token.
        let end = ContinuousClock.now + .seconds(13)
        while ContinuousClock.now < end {
            for host in ["mcp.test", "inserted.test", "appended.test"] {
                let answer = try await proxy.get("http://\(host)/")
                guard answer.status == 200 else { throw TestFailure("\(answer.status) \(answer.text)\n\(proxy.log)") }
            }
        }
        let targets = try await servers.targets()
        for form in PathIssuers.Form.allCases {
            #expect(targets.filter { $0 == "/\(form)/tenant/register" }.count == 1)
            #expect(targets.filter { $0 == "/\(form)/tenant/token" }.count >= 4, "\(targets)")
        }
        #expect(targets.contains("/.well-known/oauth-authorization-server/appended/tenant"))
        #expect(targets.contains("/.well-known/openid-configuration/appended/tenant"))
    }

    @Test("documents do not lead into a private network, unless it is listed; the API itself may be in one")
    func privateNetworks() async throws {
        let server = try RecordingOrigin()
        let api = try publishingAPI(naming: server.url)
        let proxy = try await RunningProxy.auto(api.url, networks: "[10.0.0.0/8]")
        #expect(try await proxy.get("http://mcp.test/").status == 503)
        let admin = try await proxy.administration()
        let page = try await PlainBrowser().signIn("mcp.test", at: "http://\(admin.address)")
        #expect(page.contains("The sign-in could not begin"), "\(page)")
        #expect(server.requests.isEmpty)
        #expect(api.requests.contains { $0.target.hasPrefix("/.well-known/") })
        // A challenge leads there no more than a document.
        let challenging = try publishingAPI(naming: server.url) { _ in "Bearer resource_metadata=\"\(server.url)/doc\""
        }
        let other = try await RunningProxy.auto(challenging.url, networks: "[]")
        #expect(try await other.get("http://mcp.test/").status == 503)
        _ = try await PlainBrowser().signIn("mcp.test", at: "http://\(other.administration().address)")
        #expect(server.requests.isEmpty)
    }

    @Test("UNAUTHENTICATED of a gRPC call without a token asks for the sign-in, as a 401 does")
    func calls() async throws {
        let api = try publishingAPI(naming: "https://a.example")
        let refusing = try RecordingOrigin { exchange in
            let fields = [("Content-Type", "application/grpc"), ("grpc-status", "16")]
            try exchange.respond(200, fields: fields)
        }
        let proxy = try await RunningProxy.auto(
            api.url,
            more: "  - {host: calls.test, url: \"\(refusing.url)\", client: auto, allow_plaintext: true, http2: false}")
        let call = try await proxy.send(
            "POST", "http://calls.test/service/Method",
            fields: [("Content-Type", "application/grpc"), ("TE", "trailers")],
            body: "")
        #expect(call.field("grpc-status") == "16")
        #expect((call.field("grpc-message") ?? "").contains("/login/calls.test"), "\(call)")
    }

    @Test("documents do not lead to the proxy's own listeners, where requests get another client's credentials")
    func ownListeners() async throws {
        let (victim, port, adminPort) = (try RecordingOrigin(), try freePort(), try freePort())
        let listener =
            "  - {host: victim.test, url: \"\(victim.url)\", listen: \"127.0.0.1:\(port)\", allow_plaintext: true}"
        for target in [port, adminPort] {
            let server = try RecordingOrigin { exchange in
                let address = "http://\(try exchange.readBody().field("Host") ?? "")"
                try exchange.respond(
                    200, fields: [("Content-Type", "application/json")],
                    body: #"{"issuer":"\#(address)","authorization_endpoint":"\#(address)/authorize","#
                        + #""token_endpoint":"\#(address)/token","code_challenge_methods_supported":["S256"],"#
                        + #""registration_endpoint":"http://127.0.0.1:\#(target)/x"}"#)
            }
            let api = try publishingAPI(naming: server.url)
            let proxy = try await RunningProxy.auto(api.url, adminPort: adminPort, more: listener)
            #expect(try await proxy.get("http://mcp.test/").status == 503)
            let admin = "http://\(try await proxy.administration().address)"
            let page = try await PlainBrowser().signIn("mcp.test", at: admin)
            #expect(page.contains("the connection could not be made"), "\(page)")
            #expect(victim.requests.isEmpty)
            _ = try await proxy.terminate()
        }
    }

    @Test("doctor stops at the first broken link, with what to do; why and status name it")
    func broken() async throws {
        let api = try publishingAPI(naming: "https://a.example\",\"https://b.example")
        let proxy = try await RunningProxy.auto(api.url)
        let admin = try await proxy.administration()
        #expect(try await proxy.get("http://mcp.test/").status == 503)
        let sentence = "names several authorization servers: pick one as issuer: https://a.example, https://b.example"
        let doctor = try await RunningProxy.run(
            ["doctor", "mcp.test", "--config", "\(proxy.directory.path)/config.yaml"])
        #expect(doctor.ending == .exited(1))
        #expect(doctor.output.contains(sentence), "\(doctor.transcript)")
        #expect(doctor.output.contains("write one of them as issuer under the upstream's auto"))
        #expect(!doctor.output.contains("promises PKCE"), "later links are not looked at")
        let page = try await PlainBrowser().open("http://\(admin.address)/login/mcp.test")
        #expect(page.contains("https://b.example"), "\(page)")
        let status = try await RunningProxy.run(["status", "--socket", admin.socket])
        #expect(status.output.contains("fault: the API's metadata \(sentence)"), "\(status.transcript)")
        let why = try await RunningProxy.run(["why", "GET", "http://mcp.test/", "--socket", admin.socket])
        #expect(why.output.contains("fault        the API's metadata \(sentence)"), "\(why.transcript)")
    }

    @Test("why names the documents' server and the client's origin; the API's own metadata is refused")
    func why() async throws {
        let server = try await MCPServer(.mcp)
        let proxy = try await RunningProxy.auto(server.url)
        let (admin, browser) = (try await proxy.administration(), try PlainBrowser())
        #expect(try await proxy.get("http://mcp.test/mcp").status == 503)
        #expect(try await browser.signIn("mcp.test", at: "http://\(admin.address)").contains("Signed in"))
        let why = try await RunningProxy.run(["why", "GET", "http://mcp.test/mcp", "--socket", admin.socket])
        #expect(why.ending == .exited(0))
        let document = "\(server.url)/.well-known/oauth-protected-resource/mcp"
        for line in [
            "server       \(server.url), named by \(document)", "client_id    registered",
            "API          \(server.url)/mcp",
        ] {
            #expect(why.output.contains(line), "\(line) in \(why.transcript)")
        }
        let hidden = try await RunningProxy.run(
            ["why", "GET", "http://mcp.test/.well-known/oauth-protected-resource", "--socket", admin.socket])
        #expect(hidden.output.contains("404"), "\(hidden.transcript)")
    }

    @Test("a server that has forgotten the client before a sign-in gets a new registration by the page, once")
    func forgotten() async throws {
        let server = try await MCPServer(.mcp)
        let proxy = try await RunningProxy.auto(server.url)
        let (admin, browser) = (try await proxy.administration(), try PlainBrowser())
        let page = "http://\(admin.address)"
        #expect(try await proxy.get("http://mcp.test/mcp").status == 503)
        #expect(try await browser.signIn("mcp.test", at: page).contains("Signed in"))
        #expect(
            try await RunningProxy.run(["logout", "mcp.test", "--local", "--socket", admin.socket]).ending == .exited(0)
        )
        try await server.forgetClients()
        #expect(try await !browser.signIn("mcp.test", at: page).contains("Signed in"))
        let offer = try await browser.open("\(page)/login/mcp.test")
        let anew = try await browser.press("anew", on: offer, "mcp.test", at: page)
        #expect(anew.contains("will be registered at the sign-in"), "\(anew)")
        #expect(try await browser.signIn("mcp.test", at: page).contains("Signed in"))
        #expect(try await server.registrations() == 1)
    }

    @Test("Authlib takes the assertions of a published document's key, for the code and for each refresh")
    func documentAndKey() async throws {
        let (folder, port) = (try TemporaryDirectory(), try freePort())
        let servers = try await PathIssuers(.authlib, tokenSeconds: 3, documents: folder.path)
        let key = try await ForeignKeys.make("p256")
        try folder.write(key, to: "key")
        func publish(_ key: String) async throws {
            try folder.write(#"{"keys":[\#(try await ForeignKeys.publicJWK(key))]}"#, to: "jwks.json")
        }
        try await publish(key)
        let address = "https://ops.example/heimdallr-proxy.json"
        let proxy = try await RunningProxy.auto(
            servers.api(.oauth), auto: "client_document: \"\(address)\", client_key: {file: \(folder.path)/key}",
            adminPort: port)
        let printed = try await RunningProxy.run([
            "client-document", "--config", "\(proxy.directory.path)/config.yaml", "--jwks-uri",
            "https://ops.example/jwks.json",
        ])
        try folder.write(printed.output, to: "heimdallr-proxy.json")
        let (admin, browser) = ("http://127.0.0.1:\(port)", try PlainBrowser())
        #expect(try await proxy.get("http://mcp.test/").status == 503)
        #expect(try await browser.open("\(admin)/login/mcp.test").contains(address))
        let page = try await browser.signIn("mcp.test", at: admin)
        #expect(page.contains("Signed in"), "\(page)\n\(proxy.log)")
        _ = try await eventually("three tokens") {
            guard try await proxy.get("http://mcp.test/").status == 200 else { throw TestFailure(proxy.log) }
            return try await servers.targets().filter { $0 == "/oauth/tenant/token" }.count >= 3 ? true : nil
        }
        #expect(try await !servers.targets().contains("/oauth/tenant/register"))
        // The server knows another key of the client: it does not take the assertion.
        try await publish(try await ForeignKeys.make("p256"))
        let refused = try await browser.signIn("mcp.test", at: admin)
        #expect(refused.contains("Not signed in") && refused.contains("invalid_client"), "\(refused)")
    }

    @Test("client-document prints what a server reads at the configured address")
    func document() async throws {
        let folder = try TemporaryDirectory()
        let address = "https://ops.example.com/heimdallr-proxy.json"
        let file = try folder.write(
            """
            admin: {listen: 127.0.0.1:18099}
            upstreams:
              - {host: mcp.example.com, client: auto, auto: {client_document: "\(address)"}}
            """, to: "config.yaml")
        let printed = try await RunningProxy.run(["client-document", "--config", file])
        #expect(printed.ending == .exited(0), "\(printed.transcript)")
        for part in [
            "\"client_id\": \"\(address)\"", "http://127.0.0.1:18099/callback", "http://localhost:18099/callback",
            "\"refresh_token\"", "\"token_endpoint_auth_method\": \"none\"",
        ] {
            #expect(printed.output.contains(part), "\(part) in \(printed.output)")
        }
        let keys = try await RunningProxy.run(
            ["client-document", "--config", file, "--jwks-uri", "https://ops.example.com/jwks.json"])
        #expect(keys.output.contains("\"jwks_uri\": \"https://ops.example.com/jwks.json\""))
        let other = try await RunningProxy.run(["client-document", "https://ops.example.com/x.json", "--config", file])
        #expect(other.ending == .exited(1))
        #expect(
            other.errors.contains("no upstream with `client: auto` has this `client_document`"), "\(other.transcript)")
    }
}
