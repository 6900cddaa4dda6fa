import Configuration
import Heimdallr
import Testing

@Suite("Clients that a person logs in with")
struct LoginTests {
    private func yaml(_ client: String, more: String = "admin: {}") -> String {
        """
        clients:
          a: {client_id: a, \(client)}
        upstreams: [{host: a.example.com, client: a}]
        \(more)
        """
    }

    private static let memoryOnly =
        "c.yaml:2:3: clients.a: a person has to log in again after each restart: add `store` with `kind: file`"

    @Test("issuer alone is enough, for every grant")
    func issuer() throws {
        for grant in ["authorization_code", "device_code", "client_credentials"] {
            let (configuration, _) = try good(yaml("grant_type: \(grant), issuer: https://idp.example.com"))
            #expect(configuration.clients[0].issuer == "https://idp.example.com")
            #expect(configuration.clients[0].tokenEndpoint == nil)
            #expect(configuration.clients[0].needsLogin == (grant != "client_credentials"))
        }
        let (configuration, _) = try good(
            yaml("grant_type: implicit, allow_deprecated: true, authorization_endpoint: https://idp.example.com/a"))
        #expect(configuration.clients[0].tokenEndpoint == nil, "the implicit grant has none")
    }

    @Test(
        "the address of an issuer's metadata is no issuer: the right one is said",
        arguments: [
            ("https://i.example/.well-known/openid-configuration", "https://i.example"),
            ("https://i.example/realms/a/.well-known/openid-configuration", "https://i.example/realms/a"),
            ("https://i.example/.well-known/oauth-authorization-server/realms/a", "https://i.example/realms/a"),
            ("https://i.example:8443/.well-known/oauth-authorization-server", "https://i.example:8443"),
            ("https://i.example/a/.well-known/", "https://i.example/a"),
            ("https://i.example/.well-known", "https://i.example"),
        ])
    func wellKnown(written: String, meant: String) {
        #expect(
            problems(yaml("issuer: '\(written)'")) == [
                "c.yaml:2:29: clients.a.issuer: this is the URL of the issuer's metadata, not the issuer: write "
                    + "\(meant), not \"\(written)\""
            ])
    }

    @Test("keys of pushed requests arrive, and those that can't work are an error")
    func pushing() throws {
        let grant = "grant_type: authorization_code, issuer: https://i.example"
        #expect(try good(yaml(grant)).configuration.clients[0].pushedAuthorization == .auto)
        let client = try good(
            yaml(grant + ", par: required, pushed_authorization_request_endpoint: https://i.example/par")
        ).configuration.clients[0]
        #expect(client.pushedAuthorization == .required)
        #expect(client.pushedAuthorizationEndpoint == "https://i.example/par")
        #expect(try good(yaml(grant + ", par: off")).configuration.clients[0].pushedAuthorization == .off)
        for (more, message) in [
            (grant + ", par: maybe", "write one of auto, off, required"),
            (grant + ", pushed_authorization_request_endpoint: http://i.example/par", "plain text"),
            (
                grant + ", par: off, pushed_authorization_request_endpoint: https://i.example/par",
                "with `par: off` nothing is sent there"
            ),
            (
                "grant_type: authorization_code, authorization_endpoint: https://i.example/a, token_endpoint: "
                    + "https://i.example/t, par: required",
                "clients.a.pushed_authorization_request_endpoint is missing"
            ),
            ("issuer: https://i.example, par: auto", "this belongs to `grant_type: authorization_code`"),
        ] {
            let found = problems(yaml(more))
            #expect(found.count == 1 && found[0].contains(message), "\(found)")
        }
    }

    @Test("every key of a login arrives")
    func keys() throws {
        let (configuration, warnings) = try good(
            yaml(
                "grant_type: authorization_code, authorization_endpoint: https://i.example/a, token_endpoint: "
                    + "https://i.example/t, redirect_uri: com.example.app:/oauth, scope: openid"))
        let client = configuration.clients[0]
        #expect(client.grantType == .authorizationCode)
        #expect(client.authorizationEndpoint == "https://i.example/a")
        #expect(client.redirectURI == "com.example.app:/oauth")
        #expect(
            warnings == [
                Self.memoryOnly,
                "c.yaml:2:180: clients.a.scope: without `issuer` the id token can't be checked, and no "
                    + "signed-in person is shown",
            ])
    }

    @Test("a login that would live in memory only is a warning")
    func memory() throws {
        let client = "grant_type: device_code, issuer: https://idp.example.com"
        #expect(try good(yaml(client)).warnings == [Self.memoryOnly])
        let key = String(repeating: "k", count: 32)
        let store = "admin: {}\nstore: {kind: file, directory: /d, key: {env: KEY}}"
        #expect(try good(yaml(client, more: store), environment: ["KEY": key]).warnings == [])
    }

    @Test("a login that nobody could make is an error")
    func impossible() {
        func found(_ client: String, more: String = "admin: {}") -> [String] { problems(yaml(client, more: more)) }
        #expect(
            found("grant_type: authorization_code, token_endpoint: https://i.example/t") == [
                "c.yaml:2:3: clients.a.authorization_endpoint is missing: write the URL to send the browser to, or "
                    + "`issuer`"
            ])
        #expect(
            found("grant_type: device_code, token_endpoint: https://i.example/t") == [
                "c.yaml:2:3: clients.a.device_authorization_endpoint is missing: write the URL to ask for the codes, or "
                    + "`issuer`"
            ])
        #expect(
            found("grant_type: device_code, issuer: https://i.example", more: "") == [
                "c.yaml:2:3: clients.a: a person has to log in, which requires `admin`: add `admin: {}`"
            ])
        #expect(
            found("grant_type: implicit, issuer: https://i.example") == [
                "c.yaml:2:33: clients.a.grant_type: the implicit grant is deprecated (RFC 9700): use another one, or "
                    + "write `allow_deprecated: true`"
            ])
    }

    @Test("a password grant without user name and password is a login; half of it is an error")
    func password() throws {
        let client = "grant_type: password, allow_deprecated: true, token_endpoint: https://i.example/t"
        #expect(try good(yaml(client)).configuration.clients[0].needsLogin)
        #expect(
            problems(yaml(client + ", username: u")) == [
                "c.yaml:2:114: clients.a.username: this needs `password` too; without both, a person types them in at a "
                    + "login"
            ])
    }

    @Test(
        "a redirect_uri at another port of this machine is a warning, unless the port may lead here",
        arguments: [
            ("http://localhost:3000/cb", "listen: 127.0.0.1:8081", true),
            ("http://127.0.0.1/cb", "listen: localhost:8081", true),
            ("http://localhost:8081/cb", "listen: 127.0.0.1:8081", false),
            ("http://localhost:3000/cb", "listen: 127.0.0.1:0", false),
            ("http://localhost:3000/cb", "listen: 0.0.0.0:8081, token: {env: T}", false),
            ("http://localhost:3000/cb", "url: http://localhost:3000", false),
            ("https://proxy.example.com/cb", "listen: 127.0.0.1:8081", false),
            ("com.example.app:/oauth", "listen: 127.0.0.1:8081", false),
        ])
    func foreignPort(uri: String, admin: String, isWarned: Bool) throws {
        let client = "grant_type: authorization_code, client_id: c, issuer: https://i.example, redirect_uri: \"\(uri)\""
        let text = "clients:\n  a: {\(client)}\nupstreams: [{host: h.example, client: a}]\nadmin: {\(admin)}\n"
        let messages = try good(text, environment: ["T": String(repeating: "t", count: 20)]).warnings
        #expect(messages.contains { $0.contains("where the admin port does not listen") } == isWarned, "\(messages)")
    }

    @Test("expect needs an id token that can be checked")
    func expectation() throws {
        let client = "grant_type: authorization_code, authorization_endpoint: https://i.example/a, "
        for more in [
            "token_endpoint: https://i.example/t, scope: [openid]", "issuer: https://i.example, scope: [read]",
            "issuer: https://i.example, scope: [openid], id_token: off",
        ] {
            let found = problems(yaml(client + more + ", expect: \"@example.com\""))
            #expect(found.count == 1 && found[0].contains("only an id token says who has signed in"), "\(found)")
        }
        let good = try good(yaml(client + "issuer: https://i.example, scope: [openid], expect: [\"1\", a@example.com]"))
        #expect(good.configuration.clients[0].expectedPersons == ["1", "a@example.com"])
    }

    @Test(
        "admin.url is https or loopback, in the spelling of browsers, without a query",
        arguments: [
            ("http://proxy.example.com/x", "plain text"), ("https://Proxy.example.com", "lower case"),
            ("https://proxy.example.com/?x=1", "without a query"),
            ("https://u@proxy.example.com", "without a user name"),
            ("https://proxy.example.com/%2e", "letters"), ("https://proxy.example.com//x", "letters"),
            ("proxy.example.com", "absolute URL"),
        ])
    func badURL(url: String, words: String) {
        let found = problems("upstreams: [{host: h.example}]\nadmin: {url: \"\(url)\"}\n")
        #expect(found.count == 1 && found[0].contains("admin.url") && found[0].contains(words), "\(found)")
    }

    @Test(
        "a redirect_uri that can't be safe is an error",
        arguments: [
            "/callback": "write an absolute URI such as http://127.0.0.1:8081/callback",
            "https://a.example/cb#x": "write the URI without a fragment (from # on)",
            "http://a.example/cb":
                "a code would cross the network in plain text: write https://, or a loopback address",
            "HTTP://127.0.0.1/cb": "write the scheme in lower case, as browsers do",
            "https://A.example/cb": "write the host in lower case, as browsers do",
            "https://u@a.example/cb": "write the URI without a user name",
            "https://a.example/cb?state=1":
                "write the URI without state in its query: the server's answer adds this parameter",
        ] as KeyValuePairs<String, String>)
    func redirectURI(_ uri: String, _ message: String) {
        let client = "grant_type: authorization_code, issuer: https://i.example, redirect_uri: \"\(uri)\""
        #expect(problems(yaml(client)) == ["c.yaml:2:94: clients.a.redirect_uri: \(message), not \"\(uri)\""])
    }

    @Test("an endpoint that leads back to this proxy is an error, whichever it is")
    func loops() {
        let device = "grant_type: device_code, allow_plaintext: true, token_endpoint: https://i.example/t, "
        for (key, client) in [
            ("issuer", "grant_type: device_code, allow_plaintext: true, issuer: http://127.0.0.1:8080"),
            (
                "authorization_endpoint",
                "grant_type: authorization_code, allow_plaintext: true, token_endpoint: https://i.example/t, "
                    + "authorization_endpoint: http://localhost:8080/a"
            ), ("device_authorization_endpoint", device + "device_authorization_endpoint: http://127.0.0.1:8080/d"),
        ] {
            #expect(
                problems(yaml(client)) == [
                    "c.yaml:2:3: clients.a: `\(key)` leads back to this proxy, which listens on 127.0.0.1:8080: write the "
                        + "address of the authorization server"
                ])
        }
    }

    @Test("endpoints of a login obey the rule of plain text")
    func plaintext() {
        let client = "grant_type: authorization_code, issuer: http://i.example"
        #expect(problems(yaml(client)).count == 1)
        #expect(problems(yaml(client + ", allow_plaintext: true")) == [])
    }
}
