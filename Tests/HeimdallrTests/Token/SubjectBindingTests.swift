import TestSupport
import Testing
import WireText

@testable import Heimdallr

/// One sign-in for many APIs: an API's client has tokens that were made from the sign-in at another client.
@Suite struct `A token made from the sign-in at another client` {
    private static let assertionType = #""urn:ietf:params:oauth:token-type:id-jag""#
    private let endpoint: TokenEndpoint
    private let apiStore = RecordingStore()

    init() throws {
        endpoint = try TokenEndpoint { request, _ in
            if let subject = request["subject_token"] {
                let name = subject.split(separator: ".").last ?? ""
                return .token("\(name)", type: "N_A", extra: #""issued_token_type":"# + Self.assertionType)
            }
            return .token("\(request["assertion"] ?? "refreshed")-token", refreshToken: "R")
        }
    }

    /// The id token's signature is the person's name, so that the server knows it.
    private static func signIn(_ name: String) -> SignIn {
        func part(_ text: String) -> String { Base64.encode(Array(text.utf8), alphabet: .url) }
        let claims = #"{"iss":"https://idp.example","sub":"\#(name)"}"#
        return SignIn(idToken: Secret("\(part(#"{"alg":"RS256"}"#)).\(part(claims)).\(name)"), name: name)
    }

    private static func record(_ name: String, revision: UInt64) -> TokenRecord {
        let now = HeimdallrClock.system.wallClock()
        return TokenRecord(
            revision: revision, accessToken: Secret("idp-\(revision)"), issuedAt: now - 1, expiresAt: now + 3600,
            refreshToken: Secret("R\(revision)"), signIn: signIn(name))
    }

    private func provider(_ name: String) async throws -> Heimdallr {
        let provider = try makeClient(
            endpoint, name: "idp", grant: InteractiveGrant(),
            store: RecordingStore(["idp": Self.record(name, revision: 5)])
        ) { $0.authorizationEndpoint = "http://127.0.0.1:9/authorize" }
        provider.start()
        try await eventually("its record") { provider.hasAccessToken }
        return provider
    }

    private func client(of provider: Heimdallr) throws -> Heimdallr {
        let client = try makeClient(
            endpoint, name: "api", grant: IdentityAssertionGrant { provider }, store: apiStore)
        client.start()
        return client
    }

    static let changes = ["sign-out", "sign-in", "elsewhere", "sign-out elsewhere"]

    private func change(_ provider: Heimdallr, _ how: String) async throws {
        switch how {
        case "sign-out": #expect(await provider.logOut(locally: true).isForgotten)
        case "sign-in":
            let response = TokenResponse(accessToken: Secret("idp-9"), tokenType: "Bearer", expiresIn: 3600)
            let login = try #require(
                try provider.apply { life, moment in
                    Result {
                        try life.loggedIn(
                            response, as: Self.signIn("bob"), askedAt: moment.now, over: 0, moment)
                    }
                }.get())
            #expect(provider.apply { $0.loginSaved(login.id, login.record, fault: nil, $1) })
        case "elsewhere": provider.apply { $0.read(.change, .success(Self.record("bob", revision: 9)), $1) }
        default: provider.apply { $0.read(.change, .success(nil), $1) }
        }
    }

    @Test(arguments: changes)
    func `a bound token goes at once when its person goes, with former token, refresh token and record`(
        how: String
    ) async throws {
        let provider = try await provider("alice")
        let client = try client(of: provider)
        defer { for client in [client, provider] { client.shutdown() } }
        let first = try await client.accessToken()
        #expect(first.value == Secret("alice-token"))
        client.accepted(first, by: "api", isReplay: false)
        _ = try await client.refreshedToken()
        #expect(client.look { $0.suspicions.former } != nil)
        try await change(provider, how)
        #expect(client.look { $0.suspicions.former } == nil)
        #expect(client.currentToken().map { $0.value == Secret("bob-token") } ?? true)
        #expect(client.look { $0.refreshToken } == nil || client.hasAccessToken)
        if how.hasPrefix("sign-out") {
            #expect(!client.hasAccessToken)
            try await eventually("the record has none") {
                await apiStore.records["api"].map { $0.accessToken == nil && $0.refreshToken == nil } ?? false
            }
        } else {
            #expect(try await client.accessToken().value == Secret("bob-token"))
            #expect(endpoint.requests.last?["grant_type"] != "refresh_token")
        }
    }

    @Test func `a bound token is not used by a later process that knows of another sign-in`() async throws {
        let alice = try await provider("alice")
        let client = try client(of: alice)
        #expect(try await client.accessToken().value == Secret("alice-token"))
        for client in [client, alice] { client.shutdown() }
        let bob = try await provider("bob")
        let next = try self.client(of: bob)
        defer { for client in [next, bob] { client.shutdown() } }
        #expect(try await next.accessToken().value == Secret("bob-token"))
    }

    @Test func `a bound token is not used if its person goes while it is made`() async throws {
        let (asked, gate) = (Gate(), Gate())
        let slow = try TokenEndpoint { request, number in
            if number == 0 {
                asked.open()
                gate.wait()
            }
            return .token("T\(number)", refreshToken: "R")
        }
        defer { gate.open() }
        let provider = try await provider("alice")
        let client = try makeClient(slow, name: "api", grant: IdentityAssertionGrant { provider })
        defer { for client in [client, provider] { client.shutdown() } }
        let token = Task { try await client.accessToken() }
        try await offPool { asked.wait() }
        try await change(provider, "sign-in")
        gate.open()
        #expect(try await token.value.value == Secret("T1"))
    }

    @Test func `a bound token stays through refreshes and restarts, as long as its person stays`() async throws {
        let provider = try await provider("alice")
        let first = try client(of: provider)
        _ = try await first.accessToken()
        first.shutdown()
        provider.apply { $0.read(.change, .success(Self.record("alice", revision: 9)), $1) }
        let next = try client(of: provider)
        defer { for client in [next, provider] { client.shutdown() } }
        #expect(try await next.accessToken().value == Secret("alice-token"))
        #expect(try await next.refreshedToken().value == Secret("refreshed-token"))
        #expect(endpoint.requests.filter { $0["subject_token"] != nil }.count == 1)
    }
}
