import Heimdallr
import Synchronization
import Testing
import TestSupport

/// The bytes of requests to a token endpoint.
@Suite struct `The token request` {
    @Test("[10] Basic has three encodings of id and secret, in UTF-8")
    func basicEncodings() async throws {
        let expected: [(BasicEncoding, String)] = [
            // app:s3+cr%2Bt%2541%26%3D%C3%A9
            (.form, "Basic YXBwOnMzK2NyJTJCdCUyNTQxJTI2JTNEJUMzJUE5"),
            // app:s3%20cr%2Bt%2541%26%3D%C3%A9
            (.percent, "Basic YXBwOnMzJTIwY3IlMkJ0JTI1NDElMjYlM0QlQzMlQTk="),
            // app:s3 cr+t%41&=é
            (.raw, "Basic YXBwOnMzIGNyK3QlNDEmPcOp"),
        ]
        for (encoding, header) in expected {
            let endpoint = try TokenEndpoint([.token("T1")])
            let client = try makeClient(
                endpoint,
                credentials: OAuthClientSecretCredentials(
                    identifier: "app", secret: Secret("s3 cr+t%41&=é"), method: .basic(encoding)))
            _ = try await client.accessToken()
            #expect(endpoint.requests[0].field("Authorization") == header)
            #expect(endpoint.requests[0]["client_secret"] == nil)
        }
    }

    @Test("[11] username and password make Basic dXNlcm5hbWU6cGFzc3dvcmQ=")
    func basic() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        _ = try await makeClient(endpoint).accessToken()
        #expect(endpoint.requests[0].field("Authorization") == "Basic dXNlcm5hbWU6cGFzc3dvcmQ=")
    }

    @Test("[12] [58] the form is strict: every mark is escaped, secrets too")
    func strictForm() async throws {
        let marks = ":&=;+!@#$()',*[]/?% é~"
        let encoded = "%3A%26%3D%3B%2B%21%40%23%24%28%29%27%2C%2A%5B%5D%2F%3F%25+%C3%A9%7E"
        let endpoint = try TokenEndpoint([.token("T1")])
        let client = try makeClient(
            endpoint,
            credentials: OAuthClientSecretCredentials(identifier: "app", secret: Secret(marks), method: .post)
        ) { $0.parameters = [FormParameter(marks, marks)] }
        _ = try await client.accessToken()
        let request = endpoint.requests[0]
        #expect(
            request.body
                == "grant_type=client_credentials&\(encoded)=\(encoded)&client_id=app&client_secret=\(encoded)")
        #expect(request["client_secret"] == marks)
    }

    @Test("[23] an extension grant sends its parameters; grant_type and client_id are not the caller's")
    func extensionGrant() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let client = try makeClient(
            endpoint, credentials: OAuthClientSecretCredentials(identifier: "public"),
            grant: ExtensionGrant(
                type: "urn:example:grant",
                parameters: [
                    FormParameter("assertion", Secret("a=b")), FormParameter("grant_type", "password"),
                    FormParameter("client_id", "somebody else"), FormParameter("client_secret", "guess"),
                ]))
        _ = try await client.accessToken()
        let request = endpoint.requests[0]
        #expect(request["grant_type"] == "urn:example:grant")
        #expect(request["client_id"] == "public")
        #expect(request["assertion"] == "a=b")
        #expect(request["client_secret"] == nil)
        #expect(request.field("Authorization") == nil)
    }

    @Test("[41] every token request is form-urlencoded; [42] always POST, Basic by default, nothing in the URL")
    func formAndPost() async throws {
        for grant in try grants() {
            let endpoint = try TokenEndpoint([.token("T1", refreshToken: "R1"), .token("T2")])
            let clock = ManualClock()
            let client = try makeClient(endpoint, grant: grant, clock: clock.clock) { $0.allowDeprecated = true }
            _ = try await client.accessToken()
            clock.advance(by: .seconds(4000))
            _ = try await client.accessToken()
            for request in endpoint.requests {
                #expect(request.method == "POST")
                #expect(request.target == "/token")
                #expect(request.field("Content-Type") == "application/x-www-form-urlencoded")
                #expect(request.field("Accept") == "application/json")
                #expect(request.field("Authorization") == "Basic dXNlcm5hbWU6cGFzc3dvcmQ=")
                #expect(request["client_secret"] == nil)
            }
            #expect(endpoint.requests.map { $0["grant_type"] } == [grant.type, "refresh_token"])
            #expect(endpoint.problems.isEmpty)
        }
    }

    @Test("[42] a public client sends only its client_id")
    func publicClient() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        _ = try await makeClient(endpoint, credentials: OAuthClientSecretCredentials(identifier: "app")).accessToken()
        #expect(endpoint.requests[0].body == "grant_type=client_credentials&client_id=app")
        #expect(endpoint.requests[0].field("Authorization") == nil)
    }

    @Test("[43] asking again never sends the old bearer token to the token endpoint")
    func noBearerAtTokenEndpoint() async throws {
        let endpoint = try TokenEndpoint([.token("secret-T1", refreshToken: "R1"), .token("secret-T2")])
        let clock = ManualClock()
        let client = try makeClient(
            endpoint, credentials: OAuthClientSecretCredentials(identifier: "app"), clock: clock.clock)
        client.reject(try await client.accessToken())
        clock.advance(by: .seconds(1))
        _ = try await client.accessToken()
        #expect(endpoint.requests.count == 2)
        for request in endpoint.requests {
            #expect(request.field("Authorization") == nil)
            #expect(!request.body.contains("secret-T1"))
        }
    }

    @Test("[44] reserved parameters can't be set", arguments: HeimdallrConfiguration.reservedParameters.sorted())
    func reservedParameters(name: String) throws {
        let endpoint = try TokenEndpoint([])
        #expect(throws: HeimdallrConfigurationError.reservedParameter(name)) {
            try makeClient(endpoint) { $0.parameters = [FormParameter(name, "x")] }
        }
    }

    @Test("[44] the names of the list are reserved")
    func reservedNames() {
        let listed: Set<String> = [
            "grant_type", "client_id", "client_secret", "username", "password", "redirect_uri", "code", "assertion",
            "client_assertion", "client_assertion_type", "state", "response_type", "code_verifier",
            "code_challenge", "code_challenge_method",
        ]
        #expect(listed.isSubset(of: HeimdallrConfiguration.reservedParameters))
    }

    @Test("[45] extra parameters and headers go with every grant, refreshes too")
    func extras() async throws {
        for grant in try grants() {
            let endpoint = try TokenEndpoint([.token("T1", refreshToken: "R1"), .token("T2")])
            let clock = ManualClock()
            let client = try makeClient(endpoint, grant: grant, clock: clock.clock) {
                $0.allowDeprecated = true
                $0.parameters = [FormParameter("tenant", "nine")]
                $0.headers = [HeimdallrHTTPField(name: "X-Any", value: "extra")]
                $0.resource = ["https://a.example.com", "https://b.example.com"]
                $0.audience = "billing"
            }
            _ = try await client.accessToken()
            clock.advance(by: .seconds(4000))
            _ = try await client.accessToken()
            #expect(endpoint.requests.count == 2)
            for request in endpoint.requests {
                #expect(request["tenant"] == "nine")
                #expect(request["audience"] == "billing")
                #expect(request["resource"] == "https://a.example.com\nhttps://b.example.com")
                #expect(request.field("X-Any") == "extra")
            }
        }
    }

    @Test("headers that are the protocol's own, or no headers, can't be set")
    func reservedHeaders() throws {
        let endpoint = try TokenEndpoint([])
        #expect(throws: HeimdallrConfigurationError.reservedHeader("Authorization")) {
            try makeClient(endpoint) { $0.headers = [HeimdallrHTTPField(name: "Authorization", value: "x")] }
        }
        for header in [
            HeimdallrHTTPField(name: "X Y", value: "x"), HeimdallrHTTPField(name: "X", value: "a\r\nb"),
            HeimdallrHTTPField(name: "", value: ""),
        ] {
            #expect(throws: HeimdallrConfigurationError.malformedHeader(header.name)) {
                try makeClient(endpoint) { $0.headers = [header] }
            }
        }
    }

    @Test("[63] the password grant needs allowDeprecated")
    func passwordIsDeprecated() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let grant = PasswordGrant(username: "ann", password: Secret("p&w"))
        #expect(throws: HeimdallrConfigurationError.deprecatedGrant("password")) {
            try makeClient(endpoint, grant: grant)
        }
        _ = try await makeClient(endpoint, grant: grant) { $0.allowDeprecated = true }.accessToken()
        #expect(endpoint.requests[0]["username"] == "ann")
        #expect(endpoint.requests[0]["password"] == "p&w")
    }

    @Test("[55] a seeded refresh token is spent, and then the rotated one is used")
    func seededRefreshToken() async throws {
        let endpoint = try TokenEndpoint([.token("T1", refreshToken: "R1"), .token("T2", refreshToken: "R2")])
        let clock = ManualClock()
        let client = try makeClient(
            endpoint, grant: RefreshTokenGrant(refreshToken: Secret("R0")), clock: clock.clock)
        _ = try await client.accessToken()
        clock.advance(by: .seconds(4000))
        _ = try await client.accessToken()
        #expect(endpoint.requests.map { $0["refresh_token"] } == ["R0", "R1"])
        #expect(endpoint.requests.map { $0["grant_type"] } == ["refresh_token", "refresh_token"])
    }

    @Test("a secret is read anew before each token request")
    func secretsAreReadAnew() async throws {
        let endpoint = try TokenEndpoint([.token("T1"), .token("T2")])
        let count = Mutex(0)
        let secret = SecretClosureProvider {
            let number = count.withLock { count in
                count += 1
                return count
            }
            return Secret("secret\(number)")
        }
        let clock = ManualClock()
        let client = try makeClient(
            endpoint, credentials: OAuthClientSecretCredentials(identifier: "app", secret: secret, method: .post),
            clock: clock.clock)
        _ = try await client.accessToken()
        clock.advance(by: .seconds(4000))
        _ = try await client.accessToken()
        #expect(endpoint.requests.map { $0["client_secret"] } == ["secret1", "secret2"])
    }

    @Test("a secret that can't be had is an error of ours, and nothing is sent")
    func missingSecret() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let client = try makeClient(
            endpoint,
            credentials: OAuthClientSecretCredentials(
                identifier: "app", secret: SecretFileProvider(path: "/nowhere/secret")))
        let error = try await client.refusal(waiting: .seconds(10))
        guard case .clientRefused(.secret(let fault), _) = error else {
            Issue.record("\(error)")
            return
        }
        #expect(fault.description == "can't read /nowhere/secret: No such file or directory")
        #expect(endpoint.requests.isEmpty)
    }

    @Test(
        "a token endpoint is an absolute https URL; http needs to be allowed, loopback too",
        arguments: [
            ("http://127.0.0.1/token", HeimdallrConfigurationError.plaintextEndpoint("token endpoint")),
            ("HTTP://idp.example.com/token", .plaintextEndpoint("token endpoint")),
            ("idp.example.com/token", .malformedEndpoint("token endpoint")),
            ("https://", .malformedEndpoint("token endpoint")),
            ("https:///token", .malformedEndpoint("token endpoint")),
            ("ftp://idp.example.com", .malformedEndpoint("token endpoint")),
            ("https://ann:pw@idp.example.com/token", .malformedEndpoint("token endpoint")),
            ("https://idp.example.com/token#x", .malformedEndpoint("token endpoint")),
            ("https://idp.example.com/to ken", .malformedEndpoint("token endpoint")),
            ("", .malformedEndpoint("token endpoint")),
        ])
    func endpoints(url: String, expected: HeimdallrConfigurationError) {
        #expect(throws: expected) {
            try Heimdallr(
                configuration: HeimdallrConfiguration(tokenEndpoint: url),
                credentials: OAuthClientSecretCredentials(identifier: "app"), httpClient: LoopbackHTTPClient())
        }
    }

    private func grants() throws -> [any OAuthAuthorizationGrant] {
        [
            ClientCredentialsGrant(), PasswordGrant(username: "ann", password: Secret("pw")),
            RefreshTokenGrant(refreshToken: Secret("R0")),
            ExtensionGrant(type: "urn:example:grant", parameters: [FormParameter("x", "y")]),
        ]
    }
}
