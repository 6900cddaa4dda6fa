@testable import Configuration
import Heimdallr
import Testing
import WireText

@Suite("Grants that are signed here")
struct SignedGrantTests {
    private func text(_ client: String) -> String {
        """
        clients:
          a: {\(client)}
        upstreams: [{host: a.example.com, client: a}]
        """
    }

    private let jwt = "grant_type: jwt-bearer, token_endpoint: https://idp.example.com/t, "
    private let app = "grant_type: github_app, client_id: 1234, key: {env: SECRET}, "

    @Test("every key of an assertion arrives, and no client_id is needed")
    func assertion() throws {
        let (configuration, warnings) = try good(
            text(
                jwt + """
                    assertion: {key: {env: SECRET}, key_id: k, algorithm: PS256, issuer: i, subject: s, audience: https://x, \
                    scope: "a b", claims: {n: 1, t: "1", o: {l: [true]}}, expires_in: 1h}
                    """))
        var expected = SignedAssertionSettings(key: .environment(name: "SECRET"))
        expected.keyID = "k"
        expected.algorithm = .ps256
        expected.issuer = "i"
        expected.subject = "s"
        expected.audience = .text("https://x")
        expected.scope = ["a", "b"]
        expected.claims = ["n": .number("1"), "t": .string("1"), "o": .object(["l": .array([.bool(true)])])]
        expected.expiresIn = .seconds(3600)
        #expect(configuration.clients[0].assertion == .signed(expected))
        #expect(configuration.clients[0].clientID.isEmpty)
        #expect(warnings == [])
    }

    @Test(
        "an assertion that can't be made is refused",
        arguments: [
            ("{key_id: x}", "clients.a.assertion: write {file: PATH}, or `key` for an assertion that the proxy signs"),
            ("{key: {env: SECRET}, claims: {iss: x}}", "\"iss\" has a separate key: write `issuer:` beside `claims`"),
            ("{key: {env: SECRET}, claims: {jti: x}}", "\"jti\" is generated for each assertion, and can't be set"),
            ("{key: {env: SECRET}, claims: x}", "clients.a.assertion.claims: write a mapping of `name: value` lines"),
            ("{key: {env: SECRET}, algorithm: HS256}", "clients.a.assertion.algorithm: write "),
            ("{key: {env: SECRET}, audience: issuer}", "this needs `issuer` beside `assertion`"),
            ("{key: {env: SECRET}, expires_in: 2h}", "clients.a.assertion.expires_in: write a duration from 1s to 1h"),
            ("{key: {env: SECRET}, file: x}", "clients.a.assertion"),
            ("{key: {env: SECRET}, kid: x}", "unknown key \"kid\" in clients.a.assertion"),
        ])
    func badAssertion(_ assertion: String, _ message: String) {
        let found = problems(text(jwt + "assertion: \(assertion)"))
        #expect(!found.isEmpty && found.allSatisfy { $0.contains("clients.a.assertion") }, "\(found)")
        #expect(found.contains { $0.contains(message) }, "\(found)")
    }

    @Test("a SAML assertion is not signed here")
    func saml() {
        let found = problems(
            text(
                "grant_type: saml2-bearer, token_endpoint: https://idp.example.com/t, assertion: {key: {env: SECRET}}"))
        #expect(found.count == 1 && found[0].contains("the proxy can only sign JWTs"), "\(found)")
    }

    @Test("every key of a GitHub App arrives; its endpoint follows")
    func github() throws {
        let (configuration, warnings) = try good(
            text(
                app
                    + "installation: 42, api: https://github.example.com/api/v3, repositories: [one], permissions: {a: read}"
            ))
        var expected = GitHubAppSettings(key: .environment(name: "SECRET"), installation: "42")
        expected.api = "https://github.example.com/api/v3"
        expected.repositories = ["one"]
        expected.permissions = [NameValue(name: "a", value: "read")]
        #expect(configuration.clients[0].githubApp == expected)
        #expect(configuration.clients[0].grantType.description == "github_app")
        #expect(warnings == [])
    }

    @Test(
        "a key that a GitHub App can't have is refused",
        arguments: [
            ("installation: mine", "clients.a.installation: write the installation's number"),
            ("", "`grant_type: github_app` needs `installation`"),
            ("installation: 1, token_endpoint: https://x/t", "the endpoint follows from `api` and `installation`"),
            ("installation: 1, issuer: https://x", "the endpoint follows from `api` and `installation`"),
            ("installation: 1, scope: repo", "clients.a.scope: a GitHub App authenticates only with its key"),
            ("installation: 1, client_secret: {env: SECRET}", "a GitHub App authenticates only with its key"),
            ("installation: 1, repositories: [me/one]", "write the names of repositories without their owner"),
            ("installation: 1, api: http://127.0.0.1:9", "would cross the network in plain text"),
        ])
    func badGitHub(_ more: String, _ message: String) {
        let found = problems(text(app + more))
        #expect(found.count == 1 && found[0].contains(message), "\(found)")
    }

    @Test("a GitHub App's keys are refused with another grant")
    func foreign() {
        let found = problems(text(jwt + "assertion: {env: SECRET}, installation: 1"))
        #expect(found.count == 1 && found[0].contains("this belongs to `grant_type: github_app`"), "\(found)")
    }
}
