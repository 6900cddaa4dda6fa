import Configuration
import TestSupport
import Testing

@Suite struct `Certificate-bound tokens` {
    private func parse(
        _ upstream: String, client: String = ""
    ) throws -> (configuration: Configuration, warnings: [ConfigurationError.Problem]) {
        try Configuration.parse(
            yaml: """
                clients:
                  a:
                    client_id: a
                    token_endpoint: https://idp.example.com/token
                    token_endpoint_auth_method: tls_client_auth
                    certificate_bound: true
                    \(client)
                upstreams: [{host: api.example.com, client: a\(upstream)}]
                """, file: "config.yaml", environment: [:])
    }

    @Test("the client's certificate is shown to its upstreams, which may not show another or go without TLS")
    func upstreams() async throws {
        let ca = try await PrivateCA()
        let (one, other) = (try await ca.client("one"), try await ca.client("other"))
        let tls = "tls: {cert_file: \(one.certificateFile), key_file: \(one.keyFile)}"
        let (configuration, _) = try parse(", tls: {server_name: x.example}", client: tls)
        #expect(configuration.upstreams[0].tls.certFile == one.certificateFile)
        #expect(configuration.upstreams[0].tls.keyFile == one.keyFile)
        #expect(configuration.upstreams[0].tls.serverName == "x.example")

        let (another, warnings) = try parse(
            ", tls: {cert_file: \(other.certificateFile), key_file: \(other.keyFile)}", client: tls)
        #expect(another.upstreams[0].tls.certFile == other.certificateFile)
        #expect(another.upstreams[0].usesOtherCertificate && !configuration.upstreams[0].usesOtherCertificate)
        #expect(warnings.contains { $0.line == 8 && $0.message.contains("are bound to its certificate, but") })

        for (upstream, client, words) in [
            (", url: \"http://api.example.com\", allow_plaintext: true", tls, "can't be shown over http://"),
            ("", "", "clients.a.certificate_bound: there is no certificate to bind to"),
        ] {
            let error = #expect(throws: ConfigurationError.self) {
                try parse(upstream, client: client)
            }
            #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
        }
    }
}
