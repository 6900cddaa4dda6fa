import Foundation
import TestSupport
import Testing

@Suite("Keys and certificates are looked at before anything starts", .timeLimit(.minutes(3)))
struct KeyCheckTests {
    private static func configuration(_ client: String, upstream: String = "") -> String {
        """
        clients:
          billing:
            client_id: billing
            token_endpoint: https://idp.example.com/token
            \(client)
        upstreams: [{host: api.example.com, client: billing\(upstream)}]
        """
    }

    private func execute(
        _ verb: String = "check", _ client: String, files: [String: String] = [:], environment: [String: String?] = [:]
    ) async throws -> (run: ChildProcess, folder: String) {
        let directory = try TemporaryDirectory()
        for (name, content) in files { _ = try directory.write(content, to: name) }
        let text = Self.configuration(client).replacing("FOLDER", with: directory.path)
        let file = try directory.write(text, to: "config.yaml")
        let run = try await RunningProxy.run([verb, "--config", file], environment: environment)
        return (run, directory.path)
    }

    @Test(
        "check names algorithm and size of each key",
        arguments: [
            ("rsa2048", "", "an RSA key of 2048 bits, signs with RS256"),
            ("rsa2048", "PS256", "an RSA key of 2048 bits, signs with PS256"),
            ("p256", "", "a P-256 key, signs with ES256"), ("p384", "ES384", "a P-384 key, signs with ES384"),
            ("ed25519", "", "an Ed25519 key, signs with EdDSA"),
        ])
    func names(kind: String, algorithm: String, words: String) async throws {
        for form in ["pem", "jwk"] {
            let more = algorithm.isEmpty ? "" : "\n    token_endpoint_auth_signing_alg: \(algorithm)"
            let (run, _) = try await execute(
                "check", "client_key: {file: FOLDER/key}\(more)", files: ["key": try await ForeignKeys.make(kind, form)]
            )
            #expect(run.ending == .exited(0), "\(run.transcript)")
            #expect(run.output.contains("  clients.billing.client_key: \(words)\n"), "\(run.transcript)")
        }
    }

    @Test("a key that can't be used is an error with its place, for check and at start", arguments: ["check", "serve"])
    func refused(verb: String) async throws {
        let cases = [
            ("rsa1024", "pem", "", "this is an RSA key of 1024 bits: use at least 2048 bits"),
            ("p256", "pem", "RS256", "this is a P-256 key, which can't sign with RS256: write ES256"),
            ("p256", "encrypted", "", "this is locked with a passphrase"),
            ("p256", "public", "", "this holds only a public key"),
            ("p521", "pem", "", "this is of an unsupported kind"),
        ]
        for (kind, form, algorithm, words) in cases {
            let more = algorithm.isEmpty ? "" : "\n    token_endpoint_auth_signing_alg: \(algorithm)"
            let (run, folder) = try await execute(
                verb, "client_key: {file: FOLDER/key}\(more)", files: ["key": try await ForeignKeys.make(kind, form)])
            #expect(run.ending == .exited(78), "\(run.transcript)")
            #expect(
                run.errors.contains("error: \(folder)/config.yaml:5:17: clients.billing.client_key: \(words)"),
                "\(run.transcript)")
            #expect(!run.errors.contains("BEGIN"))
        }
        let key = try await ForeignKeys.make("rsa1024")
        let (bound, _) = try await execute(
            verb, "dpop: {key: {file: FOLDER/key}}", files: ["key": key])
        #expect(bound.ending == .exited(78), "\(bound.transcript)")
        #expect(bound.errors.contains("clients.billing.dpop.key: this is an RSA key of 1024 bits"))
        let (run, _) = try await execute(verb, "client_key: {env: KEY}", environment: ["KEY": key])
        #expect(run.ending == .exited(78))
    }

    @Test("a certificate has to be that of the key, for assertions and for TLS")
    func foreign() async throws {
        let ca = try await PrivateCA()
        let (one, other) = (try await ca.client("one"), try await ca.client("other"))
        for (client, key) in [
            ("tls: {cert_file: \(one.certificateFile), key_file: \(other.keyFile)}", "tls.cert_file"),
            (
                "client_key: {file: \(one.keyFile)}\n    client_certificate: {file: \(other.certificateFile)}",
                "client_key"
            ),
        ] {
            let secret = client.hasPrefix("tls") ? "token_endpoint_auth_method: tls_client_auth\n    " : ""
            let (run, _) = try await execute("check", secret + client)
            #expect(run.ending == .exited(78), "\(run.transcript)")
            #expect(run.errors.contains("clients.billing.\(key): "), "\(run.transcript)")
            #expect(run.errors.contains("is the certificate of another key"), "\(run.transcript)")
        }
        let (good, _) = try await execute(
            "check",
            "token_endpoint_auth_method: tls_client_auth\n    "
                + "tls: {cert_file: \(one.certificateFile), key_file: \(one.keyFile), ca_file: \(ca.certificateFile)}")
        #expect(good.ending == .exited(0), "\(good.transcript)")
        #expect(
            good.output.contains("  clients.billing.tls.cert_file: a P-256 key, certificate CN=one, until 20"),
            "\(good.transcript)")
        #expect(good.output.contains("  clients.billing.tls.ca_file: 1 certificate, the first to expire: CN="))
    }

    @Test("a certificate that ends within 30 days, or has ended, is a warning with its place")
    func ending() async throws {
        let ca = try await PrivateCA(days: 365)
        for (days, words) in [(10, "within 30 days: prepare a new one"), (-1, "replace it"), (90, nil)]
            as [(Int, String?)]
        {
            let certificate = try await ca.server(days: days)
            let (run, folder) = try await execute(
                "check",
                "token_endpoint_auth_method: tls_client_auth\n    "
                    + "tls: {cert_file: \(certificate.certificateFile), key_file: \(certificate.keyFile)}")
            #expect(run.ending == .exited(0), "\(run.transcript)")
            let line =
                "warning: \(folder)/config.yaml:6:22: clients.billing.tls.cert_file: the certificate CN=server expire"
            #expect(run.errors.contains(line) == (words != nil), "\(run.transcript)")
            if let words { #expect(run.errors.contains(words), "\(run.transcript)") }
        }
        let old = try await PrivateCA(days: 20)
        let (run, _) = try await execute("check", "tls: {ca_file: \(old.certificateFile)}")
        #expect(run.errors.contains("clients.billing.tls.ca_file: the certificate CN="), "\(run.transcript)")
    }
}
