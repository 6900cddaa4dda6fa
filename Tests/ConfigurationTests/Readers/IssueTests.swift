import Configuration
import Testing
import WireText

@Suite("issue names the token requests that the proxy answers itself") struct IssueTests {
    private func text(
        _ entries: String, idp: String = ", intercept: true", api: String = "require_placeholder: issued",
        store: String = "store: {kind: file, directory: /tmp/x, key: \(String(repeating: "k", count: 32))}"
    ) -> String {
        """
        \(store)
        clients:
          a: {token_endpoint: https://i.example/t, client_id: real-a, scope: [read, write], client_secret: {env: SECRET}}
          b: {token_endpoint: https://i.example/t, client_id: real-b, client_secret: {env: SECRET}}
        upstreams:
          - {host: api.example, client: a, \(api)}
          - {host: two.example, client: b, \(api)}
          - {host: i.example, paths: [/token]\(idp), issue: \(entries)}
        """
    }

    private func warnings(_ text: String) throws -> [String] {
        try good(text).warnings.filter { !$0.contains("contains a secret") }
    }

    @Test func `an entry takes ID and scopes from its client, unless it names its own`() throws {
        let read = try good(
            text(
                "[{client: a}, {client: b, client_id: legacy, client_secret: dummy, scope: x y, subject: ann, "
                    + "expires_in: 20m, answer: {token_type: bearer, ok: true}}]")
        ).configuration.upstreams[2].issue
        #expect(read.count == 2)
        #expect(read[0].clientID == "real-a" && read[0].scope == ["read", "write"] && read[0].clientSecret == nil)
        #expect(read[0].expiresIn == .seconds(3600) && read[0].subject == nil && read[0].answer.isEmpty)
        #expect(
            read[1].clientID == "legacy" && read[1].clientSecret == .literal("dummy") && read[1].scope == ["x", "y"])
        #expect(read[1].expiresIn == .seconds(1200) && read[1].answer["ok"] == .bool(true))
        #expect("\(read[1])" == "a placeholder of b for legacy, scope x y, subject ann")
        let file = try good(text("[{client: a}, {client: b, refresh_token: {env: SECRET}}]")).configuration
        #expect(file.upstreams[2].issue[1].refreshToken == .environment(name: "SECRET"))
        #expect(file.upstreams[0].takesIssued)
    }

    @Test func `what can't work is an error`() {
        for (entries, idp, fault) in [
            ("{client: c}", ", intercept: true", "issue[0].client: there is no client \"c\" under `clients`"),
            ("{client_id: x}", ", intercept: true", "issue: name the `client` whose token replaces the placeholder"),
            ("[]", ", intercept: true", "issue: write one entry or a list of up to 64"),
            ("[{client: a}, {client: b}]", ", client: a", "issue: the proxy answers here, and nothing is forwarded"),
            ("[{client: a}, {client: b, answer: {scope: x}}]", "", "the proxy decides about `scope`: leave it out"),
            ("{client: a}", ", intercept: true", "nothing issues placeholders of b"),
        ] {
            let found = problems(text(entries, idp: idp))
            #expect(found.contains { $0.contains(fault) }, "\(fault): \(found)")
        }
        let unnamed = problems(
            "upstreams: [{host: x.example, inject: {header: X, value: {env: SECRET}}, "
                + "require_placeholder: issued}]")
        #expect(unnamed.contains { $0.contains("`issued` stands for a client's token") }, "\(unnamed)")
    }

    @Test func `check warns of what does nothing, or less than it seems`() throws {
        let both = "[{client: a}, {client: b}]"
        #expect(try warnings(text(both)) == [])
        for (yaml, warning) in [
            (text(both, idp: ""), "issue: programs ask a token endpoint by https"),
            (text("[{client: a, scope: admin}, {client: b}]"), "issue[0].scope: the client has no scope admin"),
            (text("[{client: a}, {client: b}, {client: a, scope: read}]"), "issue[2]: no request reaches it"),
            (text(both, store: ""), "issue: placeholders end with this process"),
            (text(both, api: "require_placeholder: PUT-IT-HERE"), "issue[0]: no upstream replaces its placeholders"),
        ] {
            let found = try warnings(yaml)
            #expect(found.contains { $0.contains(warning) }, "\(warning): \(found)")
        }
        #expect(try warnings(text(both, idp: ", listen: '127.0.0.1:9002'")) == [])
    }
}
