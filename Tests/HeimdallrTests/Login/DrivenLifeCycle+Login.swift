import Testing

@testable import Heimdallr

extension DrivenLifeCycle {
    static func response(
        _ value: String, expiresIn: Double? = 3600, refreshToken: String? = nil, refreshLife: Double? = nil
    ) -> TokenResponse {
        TokenResponse(
            accessToken: Secret(value), tokenType: "Bearer", expiresIn: expiresIn,
            refreshToken: refreshToken.map { Secret($0) }, refreshTokenExpiresIn: refreshLife)
    }

    /// A login has brought this; its record is not saved yet.
    mutating func loggedIn(
        _ response: TokenResponse, as name: String? = nil, over stored: UInt64 = 0
    ) throws -> (id: UInt64, record: TokenRecord) {
        life.askedForLogin(now: now)
        let signIn = name.map { SignIn(idToken: Secret("header.payload.signature"), name: $0) }
        let login = try life.loggedIn(response, as: signIn, askedAt: now, over: stored, moment)
        collect()
        return try #require(login)
    }

    @discardableResult
    mutating func loginSaved(_ login: (id: UInt64, record: TokenRecord), fault: TokenStoreError? = nil) -> Bool {
        let isUsed = life.loginSaved(login.id, login.record, fault: fault, moment)
        collect()
        return isUsed
    }

    mutating func logIn(_ response: TokenResponse, as name: String? = nil) throws {
        let login = try loggedIn(response, as: name)
        #expect(loginSaved(login) == true)
    }

    @discardableResult
    mutating func waitForRefresh(_ seconds: Double = 10) -> UInt64 {
        let id = nextWaiter
        nextWaiter += 1
        life.waitForRefresh(id, until: now + .seconds(seconds), moment)
        collect()
        return id
    }

    var status: HeimdallrStatus { life.status(client: "c", grantType: "authorization_code", now: now) }
}
