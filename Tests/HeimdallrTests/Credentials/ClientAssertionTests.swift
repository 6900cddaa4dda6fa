import Foundation
import Heimdallr
import HeimdallrCurl
import TestSupport
import Testing

/// The contents of a client assertion, read by joserfc.
@Suite(.timeLimit(.minutes(2))) struct `A client assertion` {
    private func check(
        _ assertion: Secret, key: String, _ algorithm: String, audience: String
    ) async throws -> (header: [String: Any], jti: String) {
        let (header, claims) = try await ForeignKeys.verify(assertion.revealed, key: key, algorithm: algorithm)
        #expect(claims["iss"] as? String == "app")
        #expect(claims["sub"] as? String == "app")
        #expect(claims["aud"] as? String == audience)
        let (issued, expires) = (try #require(claims["iat"] as? Int), try #require(claims["exp"] as? Int))
        // A minute back, for servers whose clocks are slow.
        #expect((55...65).contains(Int(Date().timeIntervalSince1970) - issued))
        #expect(claims["nbf"] as? Int == issued)
        #expect(expires - issued == 180)
        return (header, try #require(claims["jti"] as? String))
    }

    private func authenticated(_ credentials: OAuthClientAssertionCredentials) async throws -> Secret {
        var request = TokenRequest()
        request.tokenEndpoint = "https://idp.example/token"
        try await credentials.authenticate(&request)
        #expect(request.form.contains(FormParameter("client_id", "app")))
        let assertion = try #require(request.secrets.last)
        #expect(request.form.contains(FormParameter("client_assertion", assertion)))
        return assertion
    }

    @Test(
        "a client assertion is signed by each kind of key, for the token endpoint, and made anew for each request",
        arguments: [
            ("rsa2048", "RS256"), ("rsa2048", "PS256"), ("p256", "ES256"), ("p384", "ES384"), ("ed25519", "EdDSA"),
        ])
    func keys(kind: String, algorithm: String) async throws {
        let key = try await ForeignKeys.make(kind)
        let credentials = OAuthClientAssertionCredentials(
            identifier: "app", key: Secret(key), algorithm: .init(rawValue: algorithm), keyID: "k1")
        let endpoint = "https://idp.example/token"
        let one = try await check(try await authenticated(credentials), key: key, algorithm, audience: endpoint)
        let other = try await check(try await authenticated(credentials), key: key, algorithm, audience: endpoint)
        #expect(one.header["kid"] as? String == "k1")
        #expect(one.jti != other.jti)
    }

    @Test("an assertion of client_secret_jwt is signed with the secret")
    func secret() async throws {
        let secret = "a secret of more than thirty-two bytes"
        let credentials = OAuthClientAssertionCredentials(
            identifier: "app", secret: Secret(secret), audience: .text("https://idp.example"))
        _ = try await check(
            try await authenticated(credentials), key: secret, "HS256", audience: "https://idp.example")
    }

    @Test("an assertion that somebody else makes is read again for each request")
    func file() async throws {
        let folder = try TemporaryDirectory()
        let path = folder.path(of: "assertion")
        let credentials = OAuthClientAssertionCredentials(
            identifier: "app", assertion: SecretFileProvider(path: path))
        for text in ["one.two.three", "four.five.six"] {
            _ = try folder.write(text + "\n", to: "assertion")
            #expect(try await authenticated(credentials) == Secret(text))
        }
    }

    @Test("an assertion has the type that the server wants: JWT, or that of RFC 7523bis")
    func typed() async throws {
        let key = try await ForeignKeys.make("p256")
        var credentials = OAuthClientAssertionCredentials(identifier: "app", key: Secret(key), audience: .issuer)
        for typ in ["JWT", OAuthClientAssertionCredentials.explicitType] {
            credentials.typ = typ
            var request = TokenRequest()
            request.issuer = "https://idp.example"
            try await credentials.authenticate(&request)
            let (header, _) = try await check(
                try #require(request.secrets.last), key: key, "ES256", audience: "https://idp.example")
            #expect(header["typ"] as? String == typ)
        }
        #expect(OAuthClientAssertionCredentials.explicitType == "client-authentication+jwt")
    }

    @Test("an assertion of another kind has its own type, and may identify a client without an identifier")
    func spiffe() async throws {
        let type = "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe"
        let credentials = OAuthClientAssertionCredentials(identifier: "", assertion: Secret("a.b.c"), type: type)
        var request = TokenRequest()
        try await credentials.authenticate(&request)
        #expect(
            request.form == [
                FormParameter("client_assertion_type", type), FormParameter("client_assertion", Secret("a.b.c")),
            ])
    }

    @Test("an assertion names its key as the JWK does, and its certificate by its digest")
    func names() async throws {
        let jwk = try await ForeignKeys.make("p256", "jwk")
        let named = #"{"kid":"from the JWK","# + jwk.trimmingCharacters(in: .whitespacesAndNewlines).dropFirst()
        let endpoint = "https://idp.example/token"
        let one = OAuthClientAssertionCredentials(identifier: "app", key: Secret(named))
        #expect(
            try await check(try await authenticated(one), key: jwk, "ES256", audience: endpoint).header["kid"]
                as? String
                == "from the JWK")

        let certificate = try await PrivateCA().client("app")
        let other = OAuthClientAssertionCredentials(
            identifier: "app", key: SecretFileProvider(path: certificate.keyFile),
            certificate: SecretFileProvider(path: certificate.certificateFile))
        let key = try String(contentsOfFile: certificate.keyFile, encoding: .utf8)
        let header = try await check(try await authenticated(other), key: key, "ES256", audience: endpoint).header
        let der = try await ChildProcess.output(of: [
            "sh", "-c",
            "openssl x509 -in \(certificate.certificateFile) -outform DER | openssl dgst -sha256 -binary | "
                + "basenc --base64url",
        ])
        let digest = der.trimmingCharacters(in: CharacterSet(charactersIn: "=\n"))
        #expect(header["x5t#S256"] as? String == digest)
        #expect(header["kid"] == nil)

        let foreign = OAuthClientAssertionCredentials(
            identifier: "app", key: Secret(jwk), certificate: SecretFileProvider(path: certificate.certificateFile))
        await #expect(throws: SecretProviderError.self) { try await authenticated(foreign) }
    }

    @Test("an assertion is for the issuer where that is wanted, and made by no key that is short or of another kind")
    func audience() async throws {
        let key = try await ForeignKeys.make("p256")
        let credentials = OAuthClientAssertionCredentials(identifier: "app", key: Secret(key), audience: .issuer)
        var request = TokenRequest()
        await #expect(throws: SecretProviderError.self) { try await credentials.authenticate(&request) }
        request.issuer = "https://idp.example"
        try await credentials.authenticate(&request)
        _ = try await check(try #require(request.secrets.last), key: key, "ES256", audience: "https://idp.example")

        let short = OAuthClientAssertionCredentials(
            identifier: "app", key: Secret(try await ForeignKeys.make("rsa1024")))
        let error = await #expect(throws: SecretProviderError.self) { try await authenticated(short) }
        #expect(error?.description.contains("1024 bits") == true)
        let other = OAuthClientAssertionCredentials(identifier: "app", key: Secret(key), algorithm: .rs256)
        await #expect(throws: SecretProviderError.self) { try await authenticated(other) }
    }

    @Test("each request that goes out has another assertion, after a failure too")
    func eachRequest() async throws {
        let endpoint = try TokenEndpoint([.token("T0"), .close, .token("T1")])
        let key = try await ForeignKeys.make("p256")
        var configuration = HeimdallrConfiguration()
        configuration.tokenEndpoint = endpoint.url
        configuration.allowPlaintext = true
        let client = try Heimdallr(
            name: "app", configuration: configuration,
            credentials: OAuthClientAssertionCredentials(identifier: "app", key: Secret(key)),
            httpClient: try CurlHTTPClient())
        _ = try await client.accessToken(waiting: .seconds(20))
        // The connection is kept, and ends without an answer.
        client.refreshNow()
        let requests = try await endpoint.requests(3)
        var identifiers: Set<String> = []
        for request in requests {
            #expect(request["client_id"] == "app")
            #expect(request["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
            #expect(request.field("Authorization") == nil)
            let assertion = Secret(try #require(request["client_assertion"]))
            identifiers.insert(try await check(assertion, key: key, "ES256", audience: endpoint.url).jti)
        }
        #expect(identifiers.count == 3)
    }
}
