@testable import Configuration
import HTTPMessage
import Heimdallr
import Testing

@Suite("client: auto")
struct AutoTests {
    /// A key of the store.
    private static let environment = ["SECRET": String(repeating: "A", count: 43) + "="]

    /// The entry stands in line 9.
    private func configuration(_ more: String = "", rest: String = "", admin: String = "admin: {}") -> String {
        """
        \(admin)
        store: {kind: file, directory: /tmp/tokens, key: {env: SECRET}}
        clients:
          idp: {issuer: https://idp.example, client_id: i, grant_type: authorization_code, scope: [openid]}
          machine: {issuer: https://idp.example, client_id: m, client_secret: {env: SECRET}}
        upstreams:
          - {host: idp.example, client: idp}
          - {host: machine.example, client: machine}
          - {host: mcp.example.com, client: auto\(more.isEmpty ? "" : ", " + more)}
        \(rest)
        """
    }

    private func read(_ more: String = "", rest: String = "") throws -> ClientSettings {
        let all = try good(configuration(more, rest: rest), environment: Self.environment).configuration
        #expect(all.upstreams.dropFirst(2).allSatisfy { $0.client == "mcp.example.com" })
        return try #require(all.clients.first { $0.name == "mcp.example.com" })
    }

    private func auto(_ keys: String) throws -> ClientSettings { try read("auto: {\(keys)}") }

    @Test(
        "one line is enough: a person signs in, at the API's address, and programs see nothing of the API's own sign-in"
    )
    func line() throws {
        let (all, warnings) = try good(configuration(), environment: Self.environment)
        let client = try #require(all.clients.first { $0.auto != nil })
        #expect(client.grantType == .authorizationCode)
        #expect(client.auto == AutoSettings(resource: "https://mcp.example.com"))
        #expect(client.issuer == nil && client.clientID.isEmpty && client.authMethod == .none)
        #expect(client.needsLogin)
        #expect(all.upstreams.last?.hidesDiscovery == true)
        #expect(warnings == [])
        #expect(
            try good(configuration("auto: {discovery: pass}"), environment: Self.environment).configuration.upstreams
                .last?.hidesDiscovery == false)
    }

    @Test("the client's address is the upstream's url, by the upstream's leg")
    func leg() throws {
        let client = try read(#"url: "http://127.0.0.1:9/mcp", allow_plaintext: true"#)
        #expect(client.auto?.resource == "http://127.0.0.1:9/mcp")
        #expect(client.allowPlaintext)
    }

    @Test("issuer, client and limits of client: auto are taken")
    func keys() throws {
        let pinned = try auto("issuer: https://as.example/t/, client_id: c, client_secret: {env: SECRET}, dpop: true")
        #expect(pinned.issuer == "https://as.example/t/", "byte for byte")
        #expect(pinned.clientID == "c" && pinned.authMethod == .clientSecretBasic && pinned.dpop == .ownKey)
        let document = "https://ops.example/proxy.json"
        let published = try auto("client_document: \(document), allow_scopes: [read, list]")
        #expect(published.auto?.clientDocument == document && published.clientID.isEmpty)
        #expect(published.auto?.allowedScopes == ["read", "list"])
        let signing = try auto(
            "issuer: https://as.example, client_document: \(document), client_key: {env: SECRET}, "
                + "grant_type: client_credentials")
        #expect(signing.authMethod == .privateKeyJWT && signing.clientID == document && !signing.needsLogin)
        #expect(signing.secrets.contains(.environment(name: "SECRET")))
        let known = try auto("client_id: c, client_key: {env: SECRET}, client_key_id: k1")
        #expect(known.authMethod == .privateKeyJWT && known.clientID == "c" && known.clientKeyID == "k1")
        #expect(known.clientKey == .environment(name: "SECRET") && known.clientSecret == nil && known.needsLogin)
        let asserted = try auto("client_id: there, subject_token: {client: idp}")
        #expect(asserted.grantType == .jwtBearer && asserted.auto?.subjectClient == "idp" && !asserted.needsLogin)
    }

    @Test("the keys of clients that make sense are taken, by the same rules")
    func sharedKeys() throws {
        let client = try auto(
            "issuer: https://as.example, client_id: c, client_secret: {env: SECRET}, audience: a, refresh_scope: none, "
                + "token_endpoint_auth_method: client_secret_post, params: {x: y, sign_in: {prompt: login}, refresh: {scope: a}}, "
                + "headers: {X-Tenant: acme}, authorization_details: [{type: t}], treat_as_bearer: [mac], "
                + "default_token_type: Bearer, default_expires_in: 1h, refresh_before: 5s, timeout: 3s, par: off, "
                + "labels: {team: a}, proxy: http://proxy.example:3128, dpop: {key: {env: SECRET}, algorithm: ES256}")
        #expect(client.authMethod == .clientSecretPost && client.audience == "a" && !client.refreshesWithScope)
        #expect(client.parameters == [.init("x", "y")])
        #expect(client.stepParameters[.signIn] == [.init("prompt", "login")])
        #expect(client.headers == [.init(name: "X-Tenant", value: "acme")])
        #expect(
            client.authorizationDetails.count == 1 && client.treatAsBearer == ["mac"]
                && client.pushedAuthorization == .off)
        #expect(client.timeout == .seconds(3) && client.refreshBefore == .seconds(5))
        #expect(client.dpop == .key(.environment(name: "SECRET"), algorithm: .es256))
        #expect(client.proxy != .none && client.labels.count == 1 && client.defaultTokenType == "Bearer")
    }

    @Test("upstreams of one host share one client; a port makes another")
    func shared() throws {
        let same = "  - {host: mcp.example.com, client: auto, fields: {Mcp-Name: x}}"
        #expect(
            try good(configuration(rest: same), environment: Self.environment).configuration.clients.filter {
                $0.auto != nil
            }.count == 1)
        let ports = #"  - {host: "mcp.example.com:8443", client: auto}"#
        let names = try good(configuration(rest: ports), environment: Self.environment).configuration.clients.filter {
            $0.auto != nil
        }.map(\.name)
        #expect(names == ["mcp.example.com", "mcp.example.com-8443"])
    }

    @Test(
        "mistakes are refused with what to write instead",
        arguments: [
            "issuer: as.example": "auto.issuer: write",
            "client_secret: {env: SECRET}": "auto.client_secret: this needs `client_id` too",
            "client_id: a, client_secret: {env: SECRET}":
                "auto.client_secret: write the secret's server as `issuer`",
            "client_key: {env: SECRET}":
                "this needs `client_id` or `client_document`, so that the server finds the client",
            "client_id: a, client_key_id: k": "auto.client_key_id: none does not use this: leave it out",
            "client_id: a, client_secret: {env: SECRET}, client_key: {env: SECRET}":
                "auto.client_secret: private_key_jwt sends no secret: leave this out",
            "client_id: a, client_document: https://o.example/c.json":
                "auto.client_document: there is a `client_id` already",
            "client_document: https://o.example/": "auto.client_document: write an https:// URL with a path",
            "client_document: http://o.example/c.json": "auto.client_document: write",
            "grant_type: client_credentials":
                "without a person, the server has to know the client: write `client_id` or `client_document`",
            "client_id: a, client_key: {env: SECRET}, grant_type: client_credentials":
                "auto.grant_type: write the client's server as `issuer`",
            "token_endpoint_auth_method: client_secret_post": "auto.token_endpoint_auth_method: this needs `client_id`",
            "client_id: a, client_assertion: {env: SECRET}":
                "auto.client_assertion: write the assertion's server as `issuer`",
            "client_id: a, client_key: {env: SECRET}, client_assertion_audience: issuer": "client_assertion_audience",
            "token_endpoint: https://a.example/t": "token_endpoint",
            "params: {sign_in: {scope: x}}": "auto.params.sign_in: \"scope\" comes from the API's documents",
            "params: {resource: x}": "auto.params: \"resource\" comes from the API's documents",
            "params: {state: x}": "auto.params: \"state\" is set by the grant itself",
            "client_id: a, headers: {X-A: b}": "auto.headers: write the field's server as `issuer`",
            "grant_type: password": "auto.grant_type: write one of authorization_code, client_credentials",
            "subject_token: {client: idp}":
                "this server has to know the client: write `client_id` or `client_document`",
            "client_id: a, subject_token: {}": "auto.subject_token: write {client: NAME}",
            "client_id: a, subject_token: {client: idp, token: access_token}":
                "auto.subject_token.token",
            "client_id: a, subject_token: {client: no}": "\"no\" has to be a client under `clients`",
            "client_id: a, subject_token: {client: machine}": "\"machine\" has to be a client under `clients`",
            "client_id: a, subject_token: {client: idp}, grant_type: authorization_code":
                "`subject_token` already sets the grant",
            "allow_scopes: [\"a b\", \"\\\"\"]": "auto.allow_scopes",
            "discovery: show": "auto.discovery: write one of hide, pass",
            "scope: [a]": "scope",
        ] as KeyValuePairs<String, String>)
    func bad(keys: String, message: String) {
        let found = problems(configuration("auto: {\(keys)}"), environment: Self.environment)
        #expect(found.contains { $0.hasPrefix("c.yaml:9:") && $0.contains(message) }, "\(found)")
    }

    @Test(
        "keys beside client: auto that do not fit together are refused",
        arguments: [
            "  - {host: \"*.example.org\", client: auto}": "`auto` is for one API: write its exact host",
            "  - {host: x.example, client: idp, auto: {dpop: true}}": "this applies to `client: auto`",
            "  - {host: mcp.example.com, paths: [/x], client: auto, auto: {dpop: true}}":
                "the upstreams of mcp.example.com with `client: auto` share one client",
            "  - {host: idp, client: auto}": "`clients` has a client idp already",
            "  - {host: other.example, client: mcp.example.com}":
                "upstreams[3].client: mcp.example.com is the client of `client: auto` at another upstream",
        ] as KeyValuePairs<String, String>)
    func together(entry: String, message: String) {
        let found = problems(configuration(rest: entry), environment: Self.environment)
        #expect(found.contains { $0.contains(message) }, "\(found)")
    }

    @Test("no client may be named auto, and client: auto needs a person who can sign in")
    func word() {
        let named = problems("clients: {auto: {token_endpoint: https://i.example/t, client_id: a}}\nupstreams: []")
        #expect(named.contains { $0.contains("clients.auto: this name is reserved") }, "\(named)")
        let closed = problems(configuration(admin: "proxy: {}"), environment: Self.environment)
        #expect(
            closed.contains { $0.contains("the client of mcp.example.com: a person has to") }, "\(closed)")
    }

    @Test("a sign-in that a restart would lose is warned of")
    func memory() throws {
        let (_, warnings) = try good("admin: {}\nupstreams: [{host: mcp.example.com, client: auto}]")
        #expect(warnings.contains { $0.contains("the client of mcp.example.com: a person has to") }, "\(warnings)")
    }

    // MARK: fields

    @Test("rules by field come before rules without; the same fields twice are an error")
    func fields() throws {
        func entries(_ list: [String]) -> String {
            "upstreams:\n" + list.map { "  - {host: a.example\($0)}\n" }.joined()
        }
        let routes = try good(entries(["", ", fields: {Mcp-Name: [get_*, list]}"])).configuration.resolvedRoutes
        #expect(routes.map(\.fields) == ["mcp-name: get_* or list", ""])
        let twice = problems(entries([", fields: {Mcp-Name: a}", ", fields: {mcp-name: a}"]))
        #expect(twice.count == 1 && twice[0].hasPrefix("c.yaml:3:"), "\(twice)")
        for (pattern, message) in [
            ("{Mcp-Name: \"a*b\"}", "write * at the end only"), ("{\"a b\": x}", "fields"), ("[a]", "fields"),
        ] {
            let found = problems(entries([", fields: \(pattern)"]))
            #expect(found.contains { $0.contains(message) }, "\(found)")
        }
    }
}
