import TestSupport
import Testing

@testable import Heimdallr

@Suite struct `Names of records` {
    private func name(
        _ endpoint: String = "https://a.example/token", id: String = "one",
        grant: any OAuthAuthorizationGrant = ClientCredentialsGrant(),
        _ change: (inout HeimdallrConfiguration) -> Void = { _ in }
    ) -> String {
        var configuration = HeimdallrConfiguration(tokenEndpoint: endpoint)
        change(&configuration)
        return RecordName(
            client: "billing", configuration: configuration, credentials: OAuthClientSecretCredentials(identifier: id),
            grant: grant
        ).description
    }

    @Test func `another server, client_id or account gets another record; other settings keep it`() {
        func password(_ user: String) -> PasswordGrant { PasswordGrant(username: user, password: Secret("x")) }
        let names = [
            name(), name("https://b.example/token"), name(id: "two"), name(grant: password("ada")),
            name(grant: password("eve")),
            name {
                $0.tokenEndpoint = nil
                $0.issuer = "https://a.example"
            },
            // Not to be told apart by where one part ends.
            name("https://a.example/token1", id: "one"), name("https://a.example/token", id: "1one"),
        ]
        #expect(Set(names).count == names.count)
        #expect(names.allSatisfy { RecordName.client(of: $0) == "billing" })
        let other = name {
            $0.scope = ["read"]
            $0.timeout = .seconds(1)
            $0.issuer = "https://issuer.example"
        }
        #expect(other == name())
    }

    @Test(arguments: [
        "", "billing", "-0123456789abcdef", "billing-0123456789ABCDEF", "billing-0123", "b 0123456789abcdef",
    ])
    func `a name without a digest names no client`(text: String) {
        #expect(RecordName.client(of: text) == nil)
    }

    @Test func `a client named like a record has a record of its own`() {
        #expect(RecordName.client(of: "billing-0123456789abcdef-0123456789abcdef") == "billing-0123456789abcdef")
    }

    @Test func `the store in memory finds all records of a client, and none of another client`() {
        let store = OAuthAccessTokenMemoryStore()
        let (one, two) = ("a-0123456789abcdef", "a-fedcba9876543210")
        let record = TokenRecord(revision: 1, accessToken: nil, issuedAt: 0, expiresAt: 0, refreshToken: nil)
        let ofOther = "\(one)-0123456789abcdef"
        for name in ["a", one, two, ofOther] { store.save(record, client: name) }
        #expect(Set(store.names(of: "a")) == [one, two])
        #expect(store.names(of: one) == [ofOther])
        store.remove(client: one)
        #expect(store.names(of: "a") == [two])
        #expect(store.load(client: one) == nil)
        #expect(store.load(client: "a") != nil)
    }

    @Test func `the status tells of a record that belongs to another server, until there is one of its own`()
        async throws
    {
        let store = OAuthAccessTokenMemoryStore()
        let (old, new) = (try TokenEndpoint([.token("T1", refreshToken: "R1")]), try TokenEndpoint([.token("T2")]))
        let former = try makeClient(old, store: store)
        _ = try await former.accessToken()
        #expect(!former.status().hasForeignRecord)
        let waiting = try makeClient(new, grant: InteractiveGrant(.browser), store: store) {
            $0.authorizationEndpoint = "http://127.0.0.1:9/"
        }
        waiting.start()
        try await eventually("the store is read") { waiting.status().state == .needsAuthentication }
        #expect(waiting.status().hasForeignRecord)
        let client = try makeClient(new, store: store)
        #expect(try await client.accessToken().value.revealed == "T2")
        #expect(!client.status().hasForeignRecord)
        #expect(new.requests.map { $0["refresh_token"] } == [nil])
        #expect(store.load(client: former.recordName)?.refreshToken == Secret("R1"))
    }
}
