import Testing

@testable import Playground

@Suite struct AuthorizationServerTests {
    let credentials = PlaygroundCredentials()
    let start = ContinuousClock.now
    var client: PresentedCredentials { .basic(id: credentials.clientID, secret: credentials.clientSecret) }

    private func form(_ text: String) throws -> FormParameters { try #require(FormParameters(Array(text.utf8))) }

    private var passwordForm: String {
        "grant_type=password&username=\(credentials.username)&password=\(credentials.password)"
    }

    private func grant(
        _ text: String, of server: inout AuthorizationServer, after seconds: Int = 0
    ) throws -> IssuedToken {
        try server.token(form: try form(text), client: client, now: start.advanced(by: .seconds(seconds)))
    }

    @Test func `an access token is good until it expires and not from then on`() throws {
        var server = AuthorizationServer(credentials: credentials)
        let token = try grant("grant_type=client_credentials", of: &server)
        #expect(token.expiresIn == .seconds(20))
        let justBefore = start.advanced(by: .milliseconds(19_999))
        #expect(server.grant(forAccessToken: token.accessToken, now: justBefore)?.scope == "read")
        #expect(server.grant(forAccessToken: token.accessToken, now: start.advanced(by: .seconds(20))) == nil)
        #expect(server.grant(forAccessToken: token.accessToken + "x", now: start) == nil)
    }

    @Test func `client credentials bring no refresh token and the password grant does`() throws {
        var server = AuthorizationServer(credentials: credentials)
        #expect(try grant("grant_type=client_credentials", of: &server).refreshToken == nil)
        #expect(try grant(passwordForm, of: &server).refreshToken != nil)
    }

    @Test func `a wrong user name or password is an invalid grant`() throws {
        var server = AuthorizationServer(credentials: credentials)
        #expect(throws: ErrorAnswer.invalidGrant("Wrong user name or password.")) {
            try grant("grant_type=password&username=\(credentials.username)&password=wrong", of: &server)
        }
        #expect(throws: ErrorAnswer.invalidGrant("Wrong user name or password.")) {
            try grant("grant_type=password&username=nobody&password=\(credentials.password)", of: &server)
        }
    }

    @Test(arguments: ["", "grant_type=", "grant_type=password&username=guest", "grant_type=refresh_token"])
    func `a missing parameter is an invalid request`(text: String) throws {
        var server = AuthorizationServer(credentials: credentials)
        let error = #expect(throws: ErrorAnswer.self) { try grant(text, of: &server) }
        #expect(error?.code == "invalid_request" && error?.status == 400)
    }

    @Test func `an unknown grant type and an unknown scope have errors of their own`() throws {
        var server = AuthorizationServer(credentials: credentials)
        #expect(throws: ErrorAnswer.unsupportedGrantType) { try grant("grant_type=implicit", of: &server) }
        #expect(throws: ErrorAnswer.invalidScope) {
            try grant("grant_type=client_credentials&scope=read+admin", of: &server)
        }
        #expect(try grant("grant_type=client_credentials&scope=read+write", of: &server).scope == "read write")
    }

    @Test func `only the right client gets a token, by either way of saying its secret`() throws {
        var server = AuthorizationServer(credentials: credentials)
        let form = try form("grant_type=client_credentials")
        let (id, secret) = (credentials.clientID, credentials.clientSecret)
        for good in [PresentedCredentials.basic(id: id, secret: secret), .post(id: id, secret: secret)] {
            #expect(throws: Never.self) { try server.token(form: form, client: good, now: start) }
        }
        for bad in [PresentedCredentials.basic(id: id, secret: secret + "x"), .basic(id: "other", secret: secret)] {
            #expect(throws: ErrorAnswer.invalidClient(basic: true)) {
                try server.token(form: form, client: bad, now: start)
            }
        }
        for bad in [PresentedCredentials.post(id: id, secret: ""), .none(basic: false)] {
            #expect(throws: ErrorAnswer.invalidClient(basic: false)) {
                try server.token(form: form, client: bad, now: start)
            }
        }
        #expect(ErrorAnswer.invalidClient(basic: true).status == 401)
    }

    @Test func `a refresh rotates the refresh token and leaves the earlier access token alone`() throws {
        var server = AuthorizationServer(credentials: credentials)
        let first = try grant(passwordForm, of: &server)
        let old = try #require(first.refreshToken)
        let second = try grant("grant_type=refresh_token&refresh_token=\(old)", of: &server, after: 5)
        #expect(second.refreshToken != nil)
        #expect(second.refreshToken != old)
        #expect(second.accessToken != first.accessToken)
        #expect(server.grant(forAccessToken: first.accessToken, now: start.advanced(by: .seconds(6))) != nil)
    }

    @Test func `a refresh token that comes back kills everything from its login and nothing else`() throws {
        var server = AuthorizationServer(credentials: credentials)
        let other = try grant(passwordForm, of: &server)
        let first = try grant(passwordForm, of: &server)
        let old = try #require(first.refreshToken)
        let second = try grant("grant_type=refresh_token&refresh_token=\(old)", of: &server)
        let new = try #require(second.refreshToken)
        #expect(throws: ErrorAnswer.self) { try grant("grant_type=refresh_token&refresh_token=\(old)", of: &server) }
        #expect(throws: ErrorAnswer.self) { try grant("grant_type=refresh_token&refresh_token=\(new)", of: &server) }
        #expect(server.grant(forAccessToken: second.accessToken, now: start) == nil)
        #expect(server.grant(forAccessToken: other.accessToken, now: start) != nil)
    }

    @Test func `a refresh can narrow the scope and not widen it`() throws {
        var server = AuthorizationServer(credentials: credentials)
        let wide = try #require(try grant(passwordForm + "&scope=read+write", of: &server).refreshToken)
        let narrow = try grant("grant_type=refresh_token&scope=read&refresh_token=\(wide)", of: &server)
        #expect(narrow.scope == "read")
        let token = try #require(narrow.refreshToken)
        #expect(throws: ErrorAnswer.invalidScope) {
            try grant("grant_type=refresh_token&scope=read+write&refresh_token=\(token)", of: &server)
        }
    }

    @Test func `revoking either token takes both back`() throws {
        var server = AuthorizationServer(credentials: credentials)
        for keyPath in [\IssuedToken.accessToken, \.refreshTokenOrNothing] {
            let token = try grant(passwordForm, of: &server)
            let revocation = try form("token=\(token[keyPath: keyPath])")
            try server.revoke(form: revocation, client: client, now: start)
            #expect(server.grant(forAccessToken: token.accessToken, now: start) == nil)
            #expect(throws: ErrorAnswer.self) {
                try grant("grant_type=refresh_token&refresh_token=\(token.refreshTokenOrNothing)", of: &server)
            }
        }
    }

    @Test func `revoking a token that nobody knows is no error, and a stranger can't revoke`() throws {
        var server = AuthorizationServer(credentials: credentials)
        let form = try form("token=unknown")
        try server.revoke(form: form, client: client, now: start)
        #expect(throws: ErrorAnswer.invalidClient(basic: false)) {
            try server.revoke(form: form, client: .none(basic: false), now: start)
        }
    }
}

extension IssuedToken {
    fileprivate var refreshTokenOrNothing: String { refreshToken ?? "" }
}

@Suite struct TokenTableTests {
    @Test func `the table of tokens never holds more than its capacity`() {
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
