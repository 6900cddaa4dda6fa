import Configuration
import Testing

@Suite("secrets of servers") struct RemoteSecretTests {
    private func text(_ secret: String, key: String = "client_secret", more: String = "") -> String {
        """
        clients:
          a:
            issuer: https://idp.test
            client_id: a
            \(key): \(secret)
          b: {token_endpoint: "https://idp.test/token", client_id: b, client_secret: {env: SECRET}}
        \(more)
        upstreams: [{host: api.test, client: a}, {host: b.test, client: b}]
        """
    }

    @Test func `a secret of Vault has the usual engine, method and interval`() throws {
        let client = try #require(
            try good(
                text("{vault: {url: \"https://vault.test:8200/\", path: a/b, field: f, role: r, jwt: {env: SECRET}}}")
            ).configuration.clients.first)
        #expect(
            client.clientSecret
                == .remote(
                    .vault(
                        VaultSettings(
                            url: "https://vault.test:8200", path: "a/b", field: "f",
                            login: .role("r", method: "jwt", .secret(.environment(name: "SECRET"))),
                            refresh: .seconds(300)))))
    }

    @Test func `an assertion of the platform is for the issuer, and one of SPIFFE has its type`() throws {
        func client(_ assertion: String) throws -> ClientSettings {
            try #require(try good(text(assertion, key: "client_assertion")).configuration.clients.first)
        }
        let spiffe = try client("{spiffe: {socket: \"unix:///run/agent.sock\"}}")
        #expect(
            spiffe.clientAssertion
                == .remote(.spiffe(SPIFFESettings(socket: "/run/agent.sock", audience: "https://idp.test"))))
        #expect(spiffe.clientAssertionType == "jwt-spiffe")
        let github = try client("{github_actions: {}}")
        #expect(github.clientAssertion == .remote(.githubActions(audience: "https://idp.test")))
        #expect(github.clientAssertionType == "jwt-bearer")
    }

    @Test(arguments: [
        ("{vault: {url: \"https://v.test\", path: p, field: f}}", "write `token`, or the `role` of a login"),
        ("{vault: {url: \"https://v.test\", path: p, field: f, role: r}}", "a login sends a JWT"),
        (
            "{vault: {url: \"https://v.test\", path: p, field: f, token: {env: SECRET}, role: r}}",
            "a token needs no login"
        ),
        ("{vault: {url: \"https://v.test\", path: p, token: {env: SECRET}}}", "write `field`"),
        ("{vault: {url: \"http://v.test\", path: p, field: f, token: {env: SECRET}}}", "write https://"),
        ("{vault: {url: \"https://v.test/v1\", path: p, field: f, token: {env: SECRET}}}", "without a path"),
        ("{vault: {url: \"https://v.test\", path: ../p, field: f, token: {env: SECRET}}}", "with / between them"),
        ("{vault: {url: \"https://v.test\", path: p, field: f, role: r, client: c}}", "there is no client \"c\""),
        ("{vault: {url: \"https://v.test\", path: p, field: f, role: r, client: a}}", "own secrets are asked with"),
        ("{spiffe: {socket: \"unix:/run/a.sock\"}}", "write `audience`"),
        ("{spiffe: {audience: x}}", "where the agent listens"),
        ("{spiffe: {socket: /run/a.sock, audience: x}}", "write unix: and an absolute path"),
        ("{spiffe: {socket: \"unix:/run/a.sock\", audience: x, id: y}}", "write spiffe://"),
        ("{github_actions: {}, env: SECRET}", "not both"),
        ("{github_actions: {audience: x}, refresh: 5m}", "this belongs to `command` and `vault`"),
    ])
    func `a source that can't be asked is refused with what to write`(secret: String, words: String) {
        let found = problems(text(secret))
        #expect(found.contains { $0.contains(words) }, "\(found)")
    }
}
