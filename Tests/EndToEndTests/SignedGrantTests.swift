import Foundation
import TestSupport
import Testing

@Suite("what is signed here is taken by a server that somebody else's library judges for", .timeLimit(.minutes(5)))
struct SignedGrantTests {
    private func proxy(_ server: AuthorizationServer, client: String, _ files: [String: String]) async throws
        -> RunningProxy
    {
        try await RunningProxy(
            """
            proxy: {listen: 127.0.0.1:0}
            clients:
              api:
                allow_plaintext: true
            \(client.indented(4))
            upstreams:
              - host: api.test
                url: \(server.url)
                client: api
                allow_plaintext: true
            """, files: files)
    }

    /// A private key: as PEM, and as a JWK that the server knows its public half by.
    private func key(_ kind: String) async throws -> (pem: String, set: String) {
        let pem = try await Self.python("make", kind)
        return (pem, #"{"keys": [\#(try await Self.python("jwk", pem))]}"#)
    }

    private static func python(_ arguments: String...) async throws -> String {
        let program = """
            import json, sys
            from cryptography.hazmat.primitives import serialization as s
            from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
            from joserfc import jwk
            if sys.argv[1] == "make":
                key = {"rsa": lambda: rsa.generate_private_key(65537, 2048), "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
                    "p384": lambda: ec.generate_private_key(ec.SECP384R1()), "ed25519": ed25519.Ed25519PrivateKey.generate}[sys.argv[2]]()
                print(key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption()).decode())
            else:
                key = s.load_pem_private_key(sys.argv[2].encode(), None)
                kind = jwk.RSAKey if isinstance(key, rsa.RSAPrivateKey) else \\
                    jwk.OKPKey if isinstance(key, ed25519.Ed25519PrivateKey) else jwk.ECKey
                print(json.dumps(kind.import_key(sys.argv[2]).as_dict(private=False)))
            """
        return try await ChildProcess.output(of: [try Repository.python(), "-c", program] + arguments)
    }

    private struct Report: Decodable { var who: String }

    private func who(_ proxy: RunningProxy) async throws -> String {
        let response = try await proxy.get("http://api.test/api/x")
        guard response.status == 200 else {
            throw TestFailure("\(response.status): \(response.text)\n\(proxy.log)")
        }
        return try JSONDecoder().decode(Report.self, from: Data(response.body)).who
    }

    @Test(
        "a signed assertion brings a token, whatever the key (RFC 7523)",
        arguments: [
            ("rsa", "RS256", ""), ("rsa", "PS256", "algorithm: PS256"), ("p256", "ES256", ""), ("p384", "ES384", ""),
            ("ed25519", "EdDSA", ""),
        ])
    func assertion(_ kind: String, _ algorithm: String, _ more: String) async throws {
        let key = try await key(kind)
        let server = try await AuthorizationServer(.grants(keys: key.set))
        let proxy = try await proxy(
            server,
            client: """
                grant_type: jwt-bearer
                token_endpoint: \(server.tokenEndpoint)
                client_id: app
                assertion:
                  key: {file: FOLDER/key.pem}
                  key_id: k1
                  subject: ann@example.com
                  scope: [read, write]
                  claims: {tenant: nine, level: 3}
                  expires_in: 2m
                  \(more)
                """, ["key.pem": key.pem])
        #expect(try await who(proxy) == "ann@example.com")
        let all = try server.asked()
        let asked = try #require(all.first)
        #expect(asked["client_id"] as? String == "app")
        let header = try #require(asked["header"] as? [String: Any])
        #expect(header["alg"] as? String == algorithm && header["kid"] as? String == "k1")
        let claims = try #require(asked["claims"] as? [String: Any])
        #expect(claims["iss"] as? String == "app" && claims["aud"] as? String == server.tokenEndpoint)
        #expect(claims["scope"] as? String == "read write")
        #expect(claims["tenant"] as? String == "nine" && claims["level"] as? Int == 3)
        #expect((claims["exp"] as? Int ?? 0) - (claims["iat"] as? Int ?? 0) == 120)
    }

    @Test func `each assertion differs from the last, so a server may take it once`() async throws {
        let key = try await key("p256")
        let server = try await AuthorizationServer(.grants(keys: key.set))
        let proxy = try await proxy(
            server,
            client: """
                grant_type: jwt-bearer
                token_endpoint: \(server.tokenEndpoint)
                client_id: app
                refresh_before: 0s
                assertion: {key: {file: FOLDER/key.pem}}
                """, ["key.pem": key.pem])
        #expect(try await who(proxy) == "app")
        try await server.revokeTokens()
        // Token requests are a second apart.
        try await eventually("the next one") { try await who(proxy) == "app" }
        let jtis = try server.asked().compactMap { ($0["claims"] as? [String: Any])?["jti"] as? String }
        #expect(jtis.count == 2 && Set(jtis).count == 2)
    }

    @Test func `the key file of a Google service account says who signs`() async throws {
        let key = try await key("rsa")
        let server = try await AuthorizationServer(.grants(keys: key.set))
        let account = try JSONSerialization.data(withJSONObject: [
            "type": "service_account", "project_id": "p", "private_key_id": "0123abcd", "private_key": key.pem,
            "client_email": "robot@p.iam.gserviceaccount.com", "client_id": "1", "token_uri": server.tokenEndpoint,
        ])
        let proxy = try await proxy(
            server,
            client: """
                grant_type: jwt-bearer
                token_endpoint: \(server.tokenEndpoint)
                assertion:
                  key: {file: FOLDER/account.json}
                  scope: https://www.googleapis.com/auth/devstorage.read_only
                """, ["account.json": String(decoding: account, as: UTF8.self)])
        #expect(try await who(proxy) == "robot@p.iam.gserviceaccount.com")
        let all = try server.asked()
        let asked = try #require(all.first)
        #expect(asked["client_id"] == nil)
        #expect((asked["header"] as? [String: Any])?["kid"] as? String == "0123abcd")
        let claims = try #require(asked["claims"] as? [String: Any])
        #expect(claims["sub"] == nil)
        #expect(claims["scope"] as? String == "https://www.googleapis.com/auth/devstorage.read_only")
    }

    @Test func `a SAML assertion from a file brings a token`() async throws {
        let server = try await AuthorizationServer(.grants())
        let proxy = try await proxy(
            server,
            client: """
                grant_type: saml2-bearer
                token_endpoint: \(server.tokenEndpoint)
                client_id: app
                assertion: {file: FOLDER/assertion.xml}
                """, ["assertion.xml": "<?xml version='1.0'?>\n<Assertion>ann</Assertion>\n"])
        #expect(try await who(proxy) == "ann")
    }

    private func github(_ server: AuthorizationServer, _ more: String = "installation: 42") -> String {
        """
        grant_type: github_app
        client_id: 1234
        key: {file: FOLDER/app.pem}
        api: \(server.url)
        \(more)
        """
    }

    @Test func `a GitHub App gets a token of its installation`() async throws {
        let key = try await key("rsa")
        let server = try await AuthorizationServer(.grants(keys: key.set))
        let proxy = try await proxy(
            server,
            client: github(
                server, "installation: 42\nrepositories: [hello, world]\npermissions: {contents: read, issues: write}"),
            ["app.pem": key.pem])
        #expect(try await who(proxy) == "installation")
        let all = try server.asked()
        let asked = try #require(all.first)
        #expect(asked["path"] as? String == "/app/installations/42/access_tokens")
        #expect(asked["accept"] as? String == "application/vnd.github+json")
        #expect(asked["type"] as? String == "application/json")
        let body = try #require(asked["body"] as? [String: Any])
        #expect(body["repositories"] as? [String] == ["hello", "world"])
        #expect(body["permissions"] as? [String: String] == ["contents": "read", "issues": "write"])
        let claims = try #require(asked["claims"] as? [String: Any])
        #expect(claims["iss"] as? String == "1234")
        #expect((claims["exp"] as? Int ?? 0) - (claims["iat"] as? Int ?? 0) <= 600)
    }

    @Test func `a refusal of GitHub is told in its words`() async throws {
        let key = try await key("rsa")
        let server = try await AuthorizationServer(.grants(keys: key.set))
        let proxy = try await proxy(server, client: github(server, "installation: 43"), ["app.pem": key.pem])
        #expect(try await proxy.get("http://api.test/api/x").status == 502)
        try await eventually("a line with GitHub's words") { proxy.log.contains("Not Found") }
        #expect(proxy.log.contains("installation"))
    }

    @Test func `a key that can't sign is named, and nothing is sent`() async throws {
        let key = try await key("p256")
        let server = try await AuthorizationServer(.grants(keys: key.set))
        await #expect { _ = try await proxy(server, client: github(server), ["app.pem": key.pem]) } throws: { error in
            let said = "\(error)"
            return said.contains("exited(78)") && said.contains("clients.api.key") && said.contains("RS256")
        }
        #expect(try server.asked().isEmpty)
    }
}
