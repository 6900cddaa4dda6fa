import Cryptography
import TestSupport
import Testing
import WireText

@testable import Heimdallr

@Suite struct `The end of an access token, and its source` {
    private static let now = ContinuousClock.now
    private static let wall: Int64 = 1_700_000_000

    /// An unsigned JWT that ends so many seconds from now.
    private static func jwt(_ left: Int64) -> String {
        "e30." + Base64.encode(Array(#"{"exp":\#(wall + left)}"#.utf8), alphabet: .url) + ".c2ln"
    }

    private struct Row {
        var name: String
        var token = "opaque"
        var expiresIn: Double?
        var refreshToken: String?
        var needsPerson = false
        var usual: Duration?
        var lifetime: Duration?
        var life: Duration
        var source: TokenEnd
    }

    private static let open = HeimdallrConfiguration.endless
    private static let rows: [Row] = [
        .init(name: "stated", expiresIn: 60, life: .seconds(60), source: .stated),
        .init(name: "no person is needed", life: .seconds(300), source: .usual),
        .init(name: "GitHub OAuth apps", needsPerson: true, life: open, source: .open),
        .init(name: "a refresh token", refreshToken: "R", needsPerson: true, life: .seconds(300), source: .usual),
        .init(name: "configured default", needsPerson: true, usual: .seconds(9), life: .seconds(9), source: .usual),
        .init(name: "no default end", usual: open, life: open, source: .open),
        .init(name: "a JWT shortens", token: jwt(20), life: .seconds(20), source: .jwt),
        .init(name: "a JWT does not lengthen", token: jwt(900), life: .seconds(300), source: .usual),
        .init(name: "a JWT ends no later", token: jwt(900), needsPerson: true, life: .seconds(900), source: .jwt),
        .init(name: "a JWT against a default", token: jwt(5), usual: .seconds(9), life: .seconds(5), source: .jwt),
        .init(name: "stated beside a JWT", token: jwt(20), expiresIn: 60, life: .seconds(60), source: .stated),
        .init(name: "an ended JWT", token: jwt(-20), needsPerson: true, life: .zero, source: .jwt),
        .init(name: "Mailchimp, by default", expiresIn: 0, needsPerson: true, life: .zero, source: .stated),
        .init(name: "Mailchimp, overruled", expiresIn: 0, lifetime: open, life: open, source: .open),
        .init(name: "shortened", expiresIn: 7200, lifetime: .seconds(60), life: .seconds(60), source: .configured),
        .init(name: "overruled JWT", token: jwt(5), lifetime: .seconds(60), life: .seconds(60), source: .configured),
        .init(name: "too long", lifetime: .seconds(1 << 40), life: TokenPolicy.maxLifetime, source: .configured),
    ]

    @Test("the first source that says an end decides, and a JWT can only shorten")
    func sources() throws {
        for row in Self.rows {
            var policy = TokenPolicy(
                defaultExpiresIn: row.usual, defaultTokenType: nil, treatAsBearer: [], requestedScope: [])
            policy.lifetime = row.lifetime
            policy.needsPerson = row.needsPerson
            let response = TokenResponse(
                accessToken: Secret(row.token), tokenType: "Bearer", expiresIn: row.expiresIn,
                refreshToken: row.refreshToken.map { Secret($0) })
            let token = try policy.token(
                from: response, askedAt: Self.now, keeping: nil, Moment(now: Self.now, wallClock: Self.wall) { 0.5 })
            #expect(token.expiresAt == Self.now + row.life, "\(row.name)")
            #expect(token.endsBy == row.source, "\(row.name)")
        }
    }

    /// A client at which a person has signed in. The server states no refresh token.
    private func signedIn(
        at endpoint: TokenEndpoint, _ clock: ManualClock = ManualClock(),
        _ change: (inout HeimdallrConfiguration) -> Void = { _ in }
    ) async throws -> Heimdallr {
        let client = try makeClient(endpoint, grant: InteractiveGrant(.password), clock: clock.clock) {
            $0.allowDeprecated = true
            change(&$0)
        }
        try await client.login(username: "ann", password: Secret("pw"))
        return client
    }

    @Test("a token without a known end serves until a resource refuses it, and then a person is asked")
    func open() async throws {
        let clock = ManualClock()
        let endpoint = try TokenEndpoint([.token("T1", expiresIn: nil)])
        let client = try await signedIn(at: endpoint, clock)
        defer { client.shutdown() }
        clock.advance(by: .seconds(2 * 366 * 24 * 3600))
        let token = try #require(client.currentToken())
        let status = client.status()
        #expect(status.state == .ready && status.expiresIn == nil && status.endsBy == .open)
        // Many APIs, such as GitHub's, name no error in the challenge.
        #expect(client.refused(token, by: "api", saysInvalid: false, isReplay: false) == false)
        #expect(client.status().state == .needsAuthentication)
        #expect(client.status().isTokenRefused)
        #expect(client.currentToken(for: "other")?.value == Secret("T1"))
    }

    @Test("a stated end of zero is an error that names the key, and the key overrules it")
    func zero() async throws {
        let endpoint = try TokenEndpoint([.token("T1", expiresIn: "0")])
        await #expect {
            try await signedIn(at: endpoint).shutdown()
        } throws: {
            "\($0)".contains("token_lifetime: off")
        }
        let client = try await signedIn(at: endpoint) { $0.tokenLifetime = HeimdallrConfiguration.endless }
        defer { client.shutdown() }
        #expect(client.currentToken()?.endsBy == .open)
    }

    @Test("the source is stored with the token, in a form that earlier versions read")
    func stored() throws {
        for source in TokenEnd.allCases {
            var record = TokenRecord(
                revision: 1, accessToken: Secret("T1"), issuedAt: Self.wall, expiresAt: Self.wall + 60,
                refreshToken: nil, scope: ["a"], extra: ["team": .string("x")])
            record.endsBy = source
            let bytes = StoredRecord(record, TimeStamp(wall: Self.wall)).plain()
            let read = try #require(bytes.withSpan { StoredRecord(plain: $0, format: 3) }?.record)
            #expect(read.endsBy == source && read.extra == ["team": .string("x")] && read == record)
            let moment = Moment(now: Self.now, wallClock: Self.wall + 10) { 0.5 }
            let token = try #require(read.accessToken(at: moment))
            #expect(token.endsBy == source)
            #expect(token.expiresAt == Self.now + (source == .open ? TokenPolicy.endless : .seconds(50)))
        }
    }
}
