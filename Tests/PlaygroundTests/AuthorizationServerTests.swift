import Testing

@testable import Playground

@Suite struct AuthorizationServerTests {
    let credentials = PlaygroundCredentials()
    let start = ContinuousClock.now
    var client: ClientAuthentication { .basic(id: credentials.clientID, secret: credentials.clientSecret) }

    private func server(capacity: Int = 100) -> AuthorizationServer {
        AuthorizationServer(credentials: credentials, tokenLifetime: .seconds(20), capacity: capacity)
    }

    private func form(_ text: String) throws -> FormParameters {
        try #require(FormParameters(Array(text.utf8)))
    }

    private var passwordForm: String {
        "grant_type=password&username=\(credentials.username)&password=\(credentials.password)"
    }

    private func grant(
        _ text: String, of server: inout AuthorizationServer, after seconds: Int = 0
    ) throws -> Result<IssuedToken, OAuthError> {
        server.token(form: try form(text), client: client, now: start.advanced(by: .seconds(seconds)))
    }

    @Test func `an access token is good until it expires and not from then on`() throws {
        var server = server()
        let token = try grant("grant_type=client_credentials", of: &server).get()
        #expect(token.expiresIn == .seconds(20))
        let justBefore = start.advanced(by: .milliseconds(19_999))
        #expect(server.grant(forAccessToken: token.accessToken, now: justBefore)?.scope == "read")
        #expect(server.grant(forAccessToken: token.accessToken, now: start.advanced(by: .seconds(20))) == nil)
        #expect(server.grant(forAccessToken: token.accessToken + "x", now: start) == nil)
    }

    @Test func `client credentials bring no refresh token and the password grant does`() throws {
        var server = server()
        #expect(try grant("grant_type=client_credentials", of: &server).get().refreshToken == nil)
        #expect(try grant(passwordForm, of: &server).get().refreshToken != nil)
    }

    @Test func `a wrong user name or password is an invalid grant`() throws {
        var server = server()
        #expect(throws: OAuthError.invalidGrant("Wrong user name or password.")) {
            try grant("grant_type=password&username=\(credentials.username)&password=wrong", of: &server).get()
        }
        #expect(throws: OAuthError.invalidGrant("Wrong user name or password.")) {
            try grant("grant_type=password&username=nobody&password=\(credentials.password)", of: &server).get()
        }
    }

    @Test(arguments: ["", "grant_type=", "grant_type=password&username=guest", "grant_type=refresh_token"])
    func `a missing parameter is an invalid request`(text: String) throws {
        var server = server()
        let result = try grant(text, of: &server)
        #expect(throws: OAuthError.self) { try result.get() }
        guard case .failure(let error) = result else { return }
        #expect(error.code == "invalid_request")
        #expect(error.status == 400)
    }

    @Test func `an unknown grant type and an unknown scope have errors of their own`() throws {
        var server = server()
        #expect(throws: OAuthError.unsupportedGrantType) { try grant("grant_type=implicit", of: &server).get() }
        #expect(throws: OAuthError.invalidScope) {
            try grant("grant_type=client_credentials&scope=read+admin", of: &server).get()
        }
        #expect(try grant("grant_type=client_credentials&scope=read+write", of: &server).get().scope == "read write")
    }

    @Test func `only the right client gets a token, by either way of saying its secret`() throws {
        var server = server()
        let form = try form("grant_type=client_credentials")
        let (id, secret) = (credentials.clientID, credentials.clientSecret)
        for good in [ClientAuthentication.basic(id: id, secret: secret), .post(id: id, secret: secret)] {
            #expect(throws: Never.self) { try server.token(form: form, client: good, now: start).get() }
        }
        for bad in [ClientAuthentication.basic(id: id, secret: secret + "x"), .basic(id: "other", secret: secret)] {
            #expect(throws: OAuthError.invalidClient(basic: true)) {
                try server.token(form: form, client: bad, now: start).get()
            }
        }
        for bad in [ClientAuthentication.post(id: id, secret: ""), .none(basic: false)] {
            #expect(throws: OAuthError.invalidClient(basic: false)) {
                try server.token(form: form, client: bad, now: start).get()
            }
        }
        #expect(OAuthError.invalidClient(basic: true).status == 401)
    }

    @Test func `a refresh rotates the refresh token and leaves the earlier access token alone`() throws {
        var server = server()
        let first = try grant(passwordForm, of: &server).get()
        let old = try #require(first.refreshToken)
        let second = try grant("grant_type=refresh_token&refresh_token=\(old)", of: &server, after: 5).get()
        #expect(second.refreshToken != nil)
        #expect(second.refreshToken != old)
        #expect(second.accessToken != first.accessToken)
        #expect(server.grant(forAccessToken: first.accessToken, now: start.advanced(by: .seconds(6))) != nil)
    }

    @Test func `a refresh token that comes back kills everything from its login and nothing else`() throws {
        var server = server()
        let other = try grant(passwordForm, of: &server).get()
        let first = try grant(passwordForm, of: &server).get()
        let old = try #require(first.refreshToken)
        let second = try grant("grant_type=refresh_token&refresh_token=\(old)", of: &server).get()
        let new = try #require(second.refreshToken)
        #expect(throws: OAuthError.self) {
            try grant("grant_type=refresh_token&refresh_token=\(old)", of: &server).get()
        }
        #expect(throws: OAuthError.self) {
            try grant("grant_type=refresh_token&refresh_token=\(new)", of: &server).get()
        }
        #expect(server.grant(forAccessToken: second.accessToken, now: start) == nil)
        #expect(server.grant(forAccessToken: other.accessToken, now: start) != nil)
    }

    @Test func `a refresh can narrow the scope and not widen it`() throws {
        var server = server()
        let wide = try #require(try grant(passwordForm + "&scope=read+write", of: &server).get().refreshToken)
        let narrow = try grant("grant_type=refresh_token&scope=read&refresh_token=\(wide)", of: &server).get()
        #expect(narrow.scope == "read")
        let token = try #require(narrow.refreshToken)
        #expect(throws: OAuthError.invalidScope) {
            try grant("grant_type=refresh_token&scope=read+write&refresh_token=\(token)", of: &server).get()
        }
    }

    @Test func `revoking either token takes both back`() throws {
        var server = server()
        for keyPath in [\IssuedToken.accessToken, \.refreshTokenOrNothing] {
            let token = try grant(passwordForm, of: &server).get()
            let revocation = try form("token=\(token[keyPath: keyPath])")
            #expect(server.revoke(form: revocation, client: client, now: start) == nil)
            #expect(server.grant(forAccessToken: token.accessToken, now: start) == nil)
            #expect(throws: OAuthError.self) {
                try grant("grant_type=refresh_token&refresh_token=\(token.refreshTokenOrNothing)", of: &server).get()
            }
        }
    }

    @Test func `revoking a token that nobody knows is no error, and a stranger can't revoke`() throws {
        var server = server()
        #expect(server.revoke(form: try form("token=unknown"), client: client, now: start) == nil)
        #expect(
            server.revoke(form: try form("token=unknown"), client: .none(basic: false), now: start)
                == .invalidClient(basic: false))
    }

    @Test func `the number of remembered tokens is bounded, and the newest stay`() throws {
        var server = server(capacity: 10)
        let first = try grant("grant_type=client_credentials", of: &server).get()
        var last = first
        for _ in 0..<10 { last = try grant("grant_type=client_credentials", of: &server).get() }
        #expect(server.grant(forAccessToken: first.accessToken, now: start) == nil)
        #expect(server.grant(forAccessToken: last.accessToken, now: start) != nil)
    }
}

extension IssuedToken {
    fileprivate var refreshTokenOrNothing: String { refreshToken ?? "" }
}

@Suite struct TokenTableTests {
    @Test func `it never holds more than its capacity`() {
        var table = TokenTable<Int>(lifetime: .seconds(10), capacity: 3)
        let now = ContinuousClock.now
        for number in 0..<1000 {
            table.insert("t\(number)", number, now: now)
            #expect(table.count <= 3)
        }
        #expect(table.grant(for: "t999", now: now) == 999)
        #expect(table.grant(for: "t996", now: now) == nil)
    }

    @Test func `expired tokens make room before live ones have to`() {
        var table = TokenTable<Int>(lifetime: .seconds(10), capacity: 3)
        let start = ContinuousClock.now
        table.insert("old", 1, now: start)
        let later = start.advanced(by: .seconds(9))
        table.insert("live", 2, now: later)
        table.insert("new", 3, now: start.advanced(by: .seconds(11)))
        #expect(table.count == 2)
        #expect(table.grant(for: "live", now: start.advanced(by: .seconds(11))) == 2)
    }
}
