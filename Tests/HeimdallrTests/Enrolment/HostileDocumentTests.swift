import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `Hostile documents of an API or its server` {
    /// The fault of a sign-in's first half.
    private func fault(_ client: Heimdallr) async throws -> DiscoveryFault {
        do { _ = try await client.beginLogin(redirectURI: LoginServer.callback) } catch LoginError.discovery(let fault)
        {
            return fault
        }
        throw TestFailure("the sign-in began")
    }

    static let deep = String(repeating: "[", count: 20_000)

    static let resources: [(LoginServer.Reply, DiscoveryFault)] = [
        (LoginServer.Reply.json(#"{"resource":"% ","x":"# + deep), DiscoveryFault.malformedResource),
        (.json(deep), .malformedResource), (.json("<html>"), .malformedResource), (.json(""), .malformedResource),
        (.json(#"{"resource":"%","resource":"%"}"#), .malformedResource),
        (LoginServer.Reply(flood: 65_537), .unreachable(.resource, "%", .bodyTooLarge)),
        (LoginServer.Reply(closes: true), .unreachable(.resource, "%", .cut)),
        (LoginServer.Reply(status: 302, fields: [("Location", "/x")]), .noResource(404, "%")),
        (LoginServer.Reply(status: 500), .noResource(404, "%")),
    ]

    @Test(
        "an API's document that is deep, long, cut or of another form is the error, and no server is asked",
        arguments: resources)
    func resource(_ reply: LoginServer.Reply, _ expected: DiscoveryFault) async throws {
        let api = try EnrollingServer()
        api.server[EnrollingServer.resourcePath] = reply
        let found = try await fault(api.client())
        let root = api.server.url + "/.well-known/oauth-protected-resource"
        switch expected {
        case .unreachable(let link, _, let reason): #expect(found == .unreachable(link, root + "/mcp", reason))
        case .noResource(let status, _): #expect(found == .noResource(status, root))
        default: #expect(found == expected)
        }
        #expect(api.registrations == 0)
        #expect(!api.server.targets.contains { $0.hasPrefix(LoginServer.wellKnown) || $0 == "/x" })
    }

    static let metadata: [(LoginServer.Reply, DiscoveryFault)] = [
        (LoginServer.Reply.json(deep), DiscoveryFault.malformed), (.json("[]"), .malformed),
        (LoginServer.Reply(flood: 65_537), .network(.bodyTooLarge)),
        (LoginServer.Reply(status: 302, fields: [("Location", "/x")]), .status(302)),
    ]

    @Test(
        "a server's document that is deep, long or cut is the error, and no browser is sent anywhere",
        arguments: metadata)
    func server(_ reply: LoginServer.Reply, _ expected: DiscoveryFault) async throws {
        let api = try EnrollingServer()
        api.server[LoginServer.wellKnown + "/as"] = reply
        #expect(try await fault(api.client()) == .server(api.issuer, expected))
        #expect(api.registrations == 0)
        #expect(!api.server.targets.contains("/x"))
    }

    @Test(
        "the answer to a registration is limited, and no redirect is followed",
        arguments: [
            LoginServer.Reply(flood: 65_537), LoginServer.Reply(status: 307, fields: [("Location", "/x")]), .json(deep),
            LoginServer.Reply(closes: true), .json(#"{"error":"invalid_redirect_uri"}"#, status: 400),
        ])
    func registration(_ reply: LoginServer.Reply) async throws {
        let api = try EnrollingServer()
        api.server[EnrollingServer.registration] = reply
        switch try await fault(api.client()) {
        case .registration, .unreachable(.registration, api.server.url + "/register", _): break
        case let other: throw TestFailure("\(other)")
        }
        #expect(!api.server.targets.contains("/x"))
    }

    @Test("all documents of an API together are given 5 s, whatever the client's timeout is", arguments: [30, 3])
    func slow(_ seconds: Int) async throws {
        let api = try EnrollingServer()
        let root = "/.well-known/oauth-protected-resource"
        for path in [root, EnrollingServer.resourcePath] {
            api.server[path] = LoginServer.Reply(status: 404, delay: .seconds(seconds))
        }
        let begun = ContinuousClock.now
        guard case .unreachable(.resource, let address, .timeout) = try await fault(api.client()) else {
            throw TestFailure("another fault")
        }
        #expect(address == api.server.url + (seconds == 30 ? EnrollingServer.resourcePath : root))
        #expect((.milliseconds(4900)...Duration.seconds(10)).contains(ContinuousClock.now - begun))
    }

    /// Documents by address, at https:// addresses.
    private func client(_ documents: [String: String], asked: Recorder<String>) throws -> Heimdallr {
        var configuration = HeimdallrConfiguration()
        configuration.enrolment = EnrolmentSettings(resource: "https://api.example/mcp")
        return try Heimdallr(
            name: "mcp", configuration: configuration, credentials: OAuthNoClientCredentials(),
            grant: InteractiveGrant(),
            httpClient: ScriptedHTTPClient { request in
                asked.append(request.url)
                let text = documents[request.url]
                return HeimdallrHTTPResponse(
                    status: text == nil ? 404 : 200, headers: [], body: Array((text ?? "").utf8))
            }, store: OAuthAccessTokenMemoryStore())
    }

    private static let document = "https://api.example/.well-known/oauth-protected-resource/mcp"
    private static let serverDocument = "https://as.example/.well-known/oauth-authorization-server"
    private static func resource(_ issuer: String) -> String {
        #"{"resource":"https://api.example/mcp","authorization_servers":["\#(issuer)"]}"#
    }
    private static func described(_ member: String, _ url: String) -> String {
        var endpoints = [
            "authorization_endpoint": "https://as.example/a", "token_endpoint": "https://as.example/t",
            "registration_endpoint": "https://as.example/r",
        ]
        endpoints[member] = url
        let members = endpoints.sorted { $0.key < $1.key }.map { #""\#($0.key)":"\#($0.value)""# }
        return #"{"issuer":"https://as.example","code_challenge_methods_supported":["S256"],"#
            + members.joined(separator: ",") + "}"
    }

    @Test(
        "an address that is not https:// is not asked",
        arguments: ["http://as.example", "file:///etc/passwd", "//as", ""])
    func plain(_ url: String) async throws {
        let asked = Recorder<String>()
        let challenged = try client([:], asked: asked)
        challenged.challenged(ResourceChallenge(url: "https://api.example/mcp", metadata: url), hadToken: false)
        #expect(try await fault(challenged) == .unusableLink("resource_metadata", url))
        #expect(asked.all == [])
        if !url.isEmpty {
            let named = try client([Self.document: Self.resource(url)], asked: asked)
            #expect(try await fault(named) == .unusableLink("issuer", url))
        }
        for member in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
            let client = try client(
                [
                    Self.document: Self.resource("https://as.example"),
                    Self.serverDocument: Self.described(member, url),
                ], asked: asked)
            #expect(
                try await fault(client)
                    == (member == "registration_endpoint"
                        ? .unusable(member) : .server("https://as.example", .unusable(member))),
                "\(member)")
        }
        #expect(asked.all.allSatisfy { $0 == Self.document || $0 == Self.serverDocument })
    }

    @Test("endpoints at another host than the issuer's are shown before the consent and in the status")
    func elsewhere() async throws {
        let asked = Recorder<String>()
        let client = try client(
            [
                Self.document: Self.resource("https://as.example"),
                Self.serverDocument: Self.described("token_endpoint", "https://as.example.evil.example/t"),
            ], asked: asked)
        let offer = try await client.signInOffer(redirectURI: LoginServer.callback)
        #expect(offer.foreignEndpoints == ["token_endpoint": "as.example.evil.example"])
        #expect(client.status().enrolment?.foreignEndpoints == offer.foreignEndpoints)
        for (url, shown) in [
            ("https://as.example:8443/t", "https://as.example:8443"),
            ("https://evil.example:8443/t", "evil.example:8443"),
            ("https://AS.example:443/t", nil),
        ] {
            let client = try self.client(
                [
                    Self.document: Self.resource("https://as.example"),
                    Self.serverDocument: Self.described("registration_endpoint", url),
                ], asked: asked)
            let offer = try await client.signInOffer(redirectURI: LoginServer.callback)
            #expect(offer.foreignEndpoints["registration_endpoint"] == shown)
        }
        #expect(Set(asked.all) == [Self.document, Self.serverDocument], "looking changes nothing")
    }

    @Test("a code of one of two mixed-up issuers never goes to the other, and each has its own client")
    func mixUp() async throws {
        let (honest, evil) = (try EnrollingServer(), try EnrollingServer())
        evil.server[EnrollingServer.registration] = .json(#"{"client_id":"registered-2"}"#, status: 201)
        let (one, two) = (try honest.client(), try evil.client())
        let (first, second) = (
            try await one.beginLogin(redirectURI: LoginServer.callback),
            try await two.beginLogin(redirectURI: LoginServer.callback)
        )
        // The honest server's answer, with its name, comes back for the sign-in at the other one, and the reverse.
        for (client, attempt, issuer) in [(two, second, honest.issuer), (one, first, evil.issuer)] {
            await #expect(throws: LoginError.wrongIssuer) {
                try await client.finishLogin(
                    attempt, redirectedTo: honest.server.answer(attempt, code: "honest", more: "&iss=\(issuer)"))
            }
        }
        await #expect(throws: LoginError.self) {
            try await two.finishLogin(first, redirectedTo: honest.server.answer(first, code: "honest"))
        }
        #expect(honest.server.requests("/token").isEmpty && evil.server.requests("/token").isEmpty)
    }

    @Test("an API that names another API's server gets a token for its own resource only")
    func borrowedServer() async throws {
        let (honest, evil) = (try EnrollingServer(), try EnrollingServer())
        evil.publish(issuers: [honest.issuer])
        let query = try await honest.logIn(try evil.client())
        #expect(query["resource"] == evil.api)
        #expect(honest.tokenForms.map { $0["resource"] } == [evil.api])
    }
}
