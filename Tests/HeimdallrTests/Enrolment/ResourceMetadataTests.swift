import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `Metadata of a protected resource` {
    private static let api = "https://api.example.com/mcp/v1"

    private func metadata(_ text: String, for url: String = api) throws -> ResourceMetadata {
        try ResourceMetadata(Array(text.utf8), for: url)
    }

    @Test("the challenge's address comes first, then the path inserted, then the root; each once")
    func addresses() {
        let wellKnown = "https://api.example.com/.well-known/oauth-protected-resource"
        #expect(
            ResourceAddress.ofMetadata(of: Self.api, challenged: "https://cdn.example/doc") == [
                "https://cdn.example/doc", wellKnown + "/mcp/v1", wellKnown,
            ])
        #expect(ResourceAddress.ofMetadata(of: Self.api, challenged: wellKnown) == [wellKnown, wellKnown + "/mcp/v1"])
        #expect(ResourceAddress.ofMetadata(of: "https://api.example.com", challenged: nil) == [wellKnown])
        #expect(ResourceAddress.ofMetadata(of: "https://api.example.com/", challenged: nil) == [wellKnown])
        #expect(ResourceAddress.ofMetadata(of: "no address", challenged: nil) == [])
    }

    @Test(
        "the resource has to be the API's address, or a prefix of it by whole segments at the same origin",
        arguments: [
            "https://api.example.com", "https://api.example.com/", "https://API.example.com:443/mcp",
            "https://api.example.com/mcp/", "https://api.example.com/mcp/v1", "https://api.example.com/mcp/v1/",
        ])
    func covered(_ resource: String) throws {
        #expect(try metadata(#"{"resource":"\#(resource)"}"#).resource == resource, "byte for byte")
    }

    @Test(
        "any other resource is refused",
        arguments: [
            "http://api.example.com/mcp", "https://api.example.com:8443/mcp",
            "https://api.example.com.evil.example/mcp",
            "https://example.com/mcp", "https://api.example.com/mc", "https://api.example.com/mcp/v1/x",
            "https://api.example.com/mcp/v10", "https://api.example.com@evil.example/", "https://api.example.com/mcp#a",
            "https://api.example.com/mcp?a", "https://api.example.com/x/../mcp", "https://api.example.com/%2e%2E/mcp",
            "https://api.example.com\\\\evil.example/", "/mcp", "", "urn:api", "https:api.example.com",
        ])
    func foreign(_ resource: String) {
        #expect(!ResourceAddress.covers(resource.replacing("\\\\", with: "\\"), Self.api), "\(resource)")
        #expect(throws: DiscoveryFault.self) { try metadata(#"{"resource":"\#(resource)"}"#) }
    }

    @Test(
        "documents of another form are refused",
        arguments: [
            "", "[]", "{}", #"{"resource":1}"#, #"{"resource":"https://api.example.com","authorization_servers":"a"}"#,
            #"{"resource":"https://api.example.com","authorization_servers":[1]}"#,
            #"{"resource":"https://api.example.com","authorization_servers":[""]}"#,
            #"{"resource":"https://api.example.com","authorization_servers":["https://a\u0000"]}"#,
            #"{"resource":"https://api.example.com","scopes_supported":{"a":1}}"#,
        ])
    func malformed(_ text: String) {
        #expect(throws: DiscoveryFault.malformedResource) { try metadata(text) }
    }

    @Test("a document with a long list is refused")
    func long() {
        let many = (0...ResourceMetadata.maxEntries).map { "\"https://\($0).example\"" }.joined(separator: ",")
        #expect(throws: DiscoveryFault.malformedResource) {
            try metadata(#"{"resource":"https://api.example.com","authorization_servers":[\#(many)]}"#)
        }
    }

    @Test("the only issuer counts, or the configured one if it is named; several are listed in the error")
    func issuers() throws {
        func servers(_ list: String) throws -> ResourceMetadata {
            try metadata(#"{"resource":"https://api.example.com","authorization_servers":[\#(list)]}"#)
        }
        let (one, two) = (
            try servers(#""https://a.example/""#), try servers(#""https://a.example","https://b.example""#)
        )
        #expect(try one.issuer(pinned: nil) == "https://a.example/", "no normalisation")
        #expect(throws: DiscoveryFault.severalIssuers(["https://a.example", "https://b.example"])) {
            try two.issuer(pinned: nil)
        }
        #expect(try two.issuer(pinned: "https://b.example") == "https://b.example")
        #expect(try one.issuer(pinned: "https://a.example") == "https://a.example", "an empty path is `/`")
        #expect(throws: DiscoveryFault.unlistedIssuer("https://a.example/x", listed: ["https://a.example/"])) {
            try one.issuer(pinned: "https://a.example/x")
        }
        #expect(throws: DiscoveryFault.noIssuer) { try servers("").issuer(pinned: nil) }
        #expect(try servers("").issuer(pinned: "https://c.example") == "https://c.example")
    }

    @Test("documents are kept by their cache fields, within an hour and a day")
    func cache() {
        let limits = DocumentLimits.discovered
        for (field, seconds) in [
            (nil, 86_400), ("max-age=7200", 7200), ("max-age=5", 3600), ("no-store", 3600),
            ("public, max-age=9999999", 86_400),
            ("max-age=-1", 3600), ("nonsense", 86_400), ("max-age=7200, no-cache", 3600),
        ] as [(String?, Int)] {
            let fields = field.map { [HeimdallrHTTPField(name: "Cache-Control", value: $0)] } ?? []
            #expect(
                limits.lifetime(of: HeimdallrHTTPResponse(status: 200, headers: fields)) == .seconds(seconds),
                "\(field ?? "none")")
        }
    }
}

@Suite struct `Scopes for a sign-in` {
    @Test("the scopes asked for are the challenge's, else the resource's, else none")
    func order() throws {
        #expect(try ScopeChoice(challenged: ["a"], ofResource: ["b"]).scopes() == ["a"])
        #expect(try ScopeChoice(challenged: nil, ofResource: ["b", "b"]).scopes() == ["b"])
        #expect(try ScopeChoice().scopes() == [])
    }

    @Test("offline_access is asked for only where the authorization server lists it")
    func offline() throws {
        #expect(try ScopeChoice(challenged: ["a", "offline_access"]).scopes() == ["a"])
        #expect(try ScopeChoice(challenged: ["a"], ofServer: ["offline_access"]).scopes() == ["a", "offline_access"])
        #expect(try ScopeChoice(ofServer: ["offline_access"]).scopes() == [])
    }

    @Test("a step-up asks for the union")
    func union() throws {
        #expect(try ScopeChoice(challenged: ["a"], further: ["b", "a"]).scopes() == ["a", "b"])
    }

    @Test("the operator's limit caps; it never lets the server choose instead")
    func limit() throws {
        #expect(try ScopeChoice(challenged: ["a", "b"], allowed: ["b"]).scopes() == ["b"])
        #expect(try ScopeChoice(allowed: ["b"]).scopes() == ["b"])
        #expect(throws: DiscoveryFault.scopesNotAllowed(["a"])) {
            try ScopeChoice(challenged: ["a"], allowed: ["b"]).scopes()
        }
    }

    @Test("a challenge's values are bounded, and others than scopes are left out")
    func challenge() {
        let long = String(repeating: "x", count: 5000)
        let challenge = ResourceChallenge(
            url: "https://a", metadata: long, scope: "a \"b\" \(long) c", error: "insufficient_scope", acrValues: "é",
            maxAge: "-1")
        #expect(challenge.scope == ["a", "c"])
        #expect(challenge.metadata == nil)
        #expect(challenge.acrValues == nil)
        #expect(challenge.maxAge == nil)
        #expect(challenge.reason == .scope)
        #expect(ResourceChallenge(url: "", scope: (0..<500).map { "s\($0)" }.joined(separator: " ")).scope?.count == 64)
    }
}

@Suite struct `Dynamic client registration` {
    @Test("both spellings of loopback are registered as redirect URIs")
    func redirects() {
        #expect(
            ClientRegistration.redirectURIs("http://127.0.0.1:8081/callback") == [
                "http://127.0.0.1:8081/callback", "http://localhost:8081/callback",
            ])
        #expect(
            ClientRegistration.redirectURIs("http://localhost/c") == ["http://localhost/c", "http://127.0.0.1/c"])
        #expect(ClientRegistration.redirectURIs("http://localhost.example/c") == ["http://localhost.example/c"])
        #expect(ClientRegistration.redirectURIs("com.example:/c") == ["com.example:/c"])
    }

    @Test("no secret is asked for, unless the server offers secrets only")
    func methods() {
        #expect(ClientRegistration.method(offered: nil) == .none)
        #expect(ClientRegistration.method(offered: ["client_secret_post", "none"]) == .none)
        #expect(ClientRegistration.method(offered: ["client_secret_post"]) == .post)
        #expect(ClientRegistration.method(offered: ["client_secret_basic", "client_secret_post"]) == .post)
        #expect(ClientRegistration.method(offered: ["client_secret_basic"]) == .basic)
        #expect(ClientRegistration.method(offered: ["private_key_jwt"]) == .basic)
    }

    private func client(_ text: String, asked: Enrolment.Method = .none) throws -> Enrolment.Client {
        try ClientRegistration.client(
            in: Secret(text), requested: asked, offered: nil, redirectURIs: [])
    }

    @Test("the answer's values replace those that were asked for")
    func answer() throws {
        let plain = try client(#"{"client_id":"a"}"#)
        #expect(plain == Enrolment.Client(identifier: "a", method: .none, source: .registered))
        #expect(try client(#"{"client_id":"a","client_secret":"s"}"#).method == .basic)
        #expect(
            try client(#"{"client_id":"a","client_secret":"s","token_endpoint_auth_method":"client_secret_post"}"#)
                .method
                == .post)
        let public_ = try client(#"{"client_id":"a","client_secret":"s","token_endpoint_auth_method":"none"}"#)
        #expect(public_.method == .none && public_.secret == nil)
        #expect(
            try client(#"{"client_id":"a","client_secret":"s","client_secret_expires_at":99}"#).secretExpiresAt == 99)
        // As Authlib and idpyoidc answer for public clients.
        #expect(try client(#"{"client_id":"a","client_secret":"","client_secret_expires_at":0}"#) == plain)
        let unused =
            #"{"client_id":"a","client_secret":"s","client_secret_expires_at":99,"token_endpoint_auth_method":"none"}"#
        #expect(try client(unused) == plain)
    }

    @Test(
        "an answer that can't be used is refused",
        arguments: [
            "", "[]", "{}", #"{"client_id":""}"#, #"{"client_id":"é"}"#, #"{"client_id":1}"#,
            #"{"client_id":"a","client_secret":"\n"}"#,
            #"{"client_id":"a","token_endpoint_auth_method":"client_secret_basic"}"#,
            #"{"client_id":"a","client_secret":"s","token_endpoint_auth_method":"private_key_jwt"}"#,
            #"{"client_id":"a","client_secret":"s","token_endpoint_auth_method":"configured"}"#,
        ])
    func bad(_ text: String) {
        #expect(throws: DiscoveryFault.self) { try client(text) }
    }

    @Test("an enrolment comes back from the store as it was, and prints nothing")
    func stored() throws {
        var enrolment = Enrolment(
            resource: "https://a/", issuer: "https://b", scope: ["x", "y"],
            client: Enrolment.Client(
                identifier: "i", secret: Secret("s3cret"), method: .post, source: .registered, redirectURIs: ["u"],
                secretExpiresAt: 6, isRefused: true))
        enrolment.registrations.succeeded(at: "https://b", replacing: false, now: 5)
        enrolment.registrations.failed(at: "https://c", now: 7)
        #expect(Enrolment(stored: enrolment.stored) == enrolment)
        #expect("\(enrolment)" == "<redacted>")
        enrolment.resource = nil
        enrolment.client.secret = nil
        #expect(Enrolment(stored: enrolment.stored) == enrolment)
        for text in ["", "{}", "[]", #"{"issuer":"a","client_id":"b","method":"x","source":"typed"}"#] {
            #expect(Enrolment(stored: Secret(text)) == nil)
        }
    }

    @Test("the client id metadata document has the grants, both redirects and, with a key, its address")
    func document() throws {
        let plain = ClientDocument.json(
            identifier: "https://ops.example/c.json", name: "n", redirectURI: "http://127.0.0.1:1/callback")
        for part in [
            #""client_id": "https://ops.example/c.json""#, #""refresh_token""#, #""http://localhost:1/callback""#,
            #""token_endpoint_auth_method": "none""#,
        ] {
            #expect(plain.contains(part), "\(part) in \(plain)")
        }
        let keyed = ClientDocument.json(
            identifier: "https://ops.example/c.json", name: "n", redirectURI: "http://127.0.0.1:1/callback",
            keys: "https://ops.example/jwks.json")
        #expect(keyed.contains(#""token_endpoint_auth_method": "private_key_jwt""#))
        #expect(keyed.contains(#""jwks_uri": "https://ops.example/jwks.json""#))
        #expect(!keyed.contains(#""none""#))
    }
}
