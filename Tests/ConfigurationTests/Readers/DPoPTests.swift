import Configuration
import Heimdallr
import Testing

@Suite("dpop")
struct DPoPTests {
    private func configuration(_ dpop: String, inject: String = "") -> String {
        """
        clients:
          a:
            token_endpoint: https://i.example/token
            client_id: a
            dpop: \(dpop)
        upstreams:
          - {host: api.example.com, client: a\(inject)}
        """
    }

    private func read(_ dpop: String) throws -> ClientSettings.DPoP? {
        try good(configuration(dpop), environment: ["KEY": "x"]).configuration.clients
            .first?.dpop
    }

    @Test("the key of dpop is the proxy's own, or one from a file")
    func isRead() throws {
        #expect(try read("true") == .ownKey)
        #expect(try read("false") == .off)
        #expect(try read("{key: {env: KEY}}") == .key(.environment(name: "KEY"), algorithm: nil))
        #expect(try read("{key: {env: KEY}, algorithm: EdDSA}") == .key(.environment(name: "KEY"), algorithm: .edDSA))
    }

    @Test(
        "a value of dpop that does not fit is refused with what to write instead",
        arguments: [
            ("yes", "write true, or {key: {file: PATH}} for a key of your own"),
            ("{algorithm: ES256}", "write `key`, or `dpop: true` for a key that the proxy makes"),
            ("{key: {env: KEY}, algorithm: HS256}", "write one of RS256, PS256, ES256, ES384, EdDSA"),
        ])
    func bad(dpop: String, message: String) {
        let found = problems(configuration(dpop), environment: ["KEY": "x"])
        #expect(found.contains { $0.contains("clients.a.dpop") && $0.contains(message) }, "\(found)")
    }

    @Test(
        "tokens of dpop go into Authorization only",
        arguments: [
            "{header: X-Token, scheme: Bearer}", "{header: Authorization, scheme: Token}",
            "{query: access_token}, allow_deprecated: true",
        ])
    func elsewhere(inject: String) {
        let found = problems(configuration("true", inject: ", inject: \(inject)"))
        #expect(found.contains { $0.contains("upstreams[0]: the client \"a\" has `dpop`") }, "\(found)")
    }
}
