import Foundation
import TestSupport
import Testing

/// RFC 7009, and what the systems before this one did wrong: only the access token was revoked, and without an endpoint
/// or a token nobody was ever called back.
@Suite("logout", .timeLimit(.minutes(2)))
struct LogoutTests {
    /// - Parameter revocation: what the revocation endpoint does with each request.
    private func proxy(
        revocation: [TokenEndpointAnswer], refresh: Bool = true, client: String = ""
    ) async throws -> (admin: AdministeredProxy, endpoint: TokenEndpoint) {
        let endpoint = try TokenEndpoint { request, number in
            if request.target == "/token" {
                return .token(accessToken, refreshToken: refresh ? refreshToken : nil)
            }
            return revocation[
                min(request["token_type_hint"] == "refresh_token" || !refresh ? 0 : 1, revocation.count - 1)]
        }
        let url = endpoint.url.replacing("/token", with: "/revoke")
        let admin = try await AdministeredProxy(endpoint, client: "revocation_endpoint: \(url)\n\(client)")
        try await admin.ready()
        return (admin, endpoint)
    }

    private func revocations(_ endpoint: TokenEndpoint) -> [TokenEndpointRequest] {
        endpoint.requests.filter { $0.target == "/revoke" }
    }

    @Test(arguments: ["client_secret_basic", "client_secret_post"])
    func `the refresh token is revoked, then the access token, by a client that says who it is`(method: String)
        async throws
    {
        let (admin, endpoint) = try await proxy(
            revocation: [.status(200)], client: "token_endpoint_auth_method: \(method)\nheaders: {X-Tenant: t}")
        let run = try await admin.run("logout", "api")
        #expect(run.ending == .exited(0))
        #expect(
            run.output.contains("The server has revoked the refresh token.\nThe server has revoked the access token.\n")
        )
        let asked = revocations(endpoint)
        #expect(asked.map { $0["token"] } == [refreshToken, accessToken])
        #expect(asked.map { $0["token_type_hint"] } == ["refresh_token", "access_token"])
        for request in asked {
            #expect(request.method == "POST")
            #expect(request.field("Content-Type") == "application/x-www-form-urlencoded")
            #expect(request.field("X-Tenant") == "t")
            if method == "client_secret_post" {
                #expect(request["client_id"] == "the-tests")
                #expect(request["client_secret"] == clientSecret)
            } else {
                let basic = Data("the-tests:\(clientSecret)".utf8).base64EncodedString()
                #expect(request.field("Authorization") == "Basic \(basic)")
                #expect(request["client_secret"] == nil)
            }
        }
        #expect(try await admin.run("status").output.contains("has no token; the next request gets one"))
        let again = try await admin.run("logout", "api")
        #expect(again.ending == .exited(0))
        #expect(again.output.contains("There was no token"))
        #expect(revocations(endpoint).count == 2)
        // A grant without a person continues with a new token.
        #expect(try await admin.proxy.get("http://api.test/").status == 200)
        #expect(!admin.proxy.log.contains("SEKRET"))
    }

    @Test func `a client with only an access token has only that revoked`() async throws {
        let (admin, endpoint) = try await proxy(revocation: [.status(200)], refresh: false)
        #expect(try await admin.run("logout", "api").ending == .exited(0))
        #expect(revocations(endpoint).map { $0["token"] } == [accessToken])
    }

    @Test(arguments: [
        (TokenEndpointAnswer.status(503), "503"), (.error("invalid_client", status: 401), "invalid_client"),
        (.error("unsupported_token_type"), "does not revoke refresh tokens"),
        (.close, "broke before the answer was whole"),
        (.redirect(302, to: "http://127.0.0.1:1/"), "redirect"),
    ])
    func `a token that the server would not revoke is kept, and can be forgotten alone`(
        answer: TokenEndpointAnswer, words: String
    ) async throws {
        let (admin, endpoint) = try await proxy(revocation: [answer])
        let run = try await admin.run("logout", "api")
        #expect(run.ending == .exited(1))
        #expect(run.errors.contains(words), "\(run.errors)")
        #expect(run.errors.contains("Nothing was forgotten here."))
        #expect(revocations(endpoint).map { $0["token"] } == [refreshToken])
        #expect(try await admin.run("status").output.contains("has a valid token"))
        let count = endpoint.requests.count
        let local = try await admin.run("logout", "api", "--local")
        #expect(local.ending == .exited(0))
        #expect(try await admin.run("status").output.contains("has no token"))
        #expect(endpoint.requests.count == count)
    }

    @Test func `once the refresh token is revoked all tokens are forgotten, and failures are told`() async throws {
        let (admin, _) = try await proxy(revocation: [.status(200), .status(500)])
        let run = try await admin.run("logout", "api")
        #expect(run.ending == .exited(1))
        #expect(run.errors.contains("The server has revoked the refresh token."))
        #expect(run.errors.contains("did not revoke the access token"))
        #expect(run.errors.contains("are forgotten here"))
        #expect(try await admin.run("status").output.contains("has no token"))
    }

    @Test func `a server that revokes no access tokens is no failure once the refresh token is gone`() async throws {
        let (admin, _) = try await proxy(revocation: [.status(200), .error("unsupported_token_type")])
        let run = try await admin.run("logout", "api")
        #expect(run.ending == .exited(0))
        #expect(run.output.contains("does not revoke access tokens; this one expires in 59 min"))
    }

    @Test func `a logout without an endpoint has a definite answer, and changes nothing`() async throws {
        let admin = try await AdministeredProxy()
        try await admin.ready()
        let run = try await admin.run("logout", "api")
        #expect(run.ending == .exited(1))
        #expect(run.errors.contains("no revocation_endpoint"))
        #expect(run.errors.contains("--local"))
        #expect(try await admin.run("status").output.contains("has a valid token"))
    }

    @Test func `a logout of an unknown client fails and names the clients`() async throws {
        let admin = try await AdministeredProxy()
        for name in ["apo", "", "../status", "a/b", "%2e%2e"] {
            let run = try await admin.run("logout", name)
            #expect(run.ending == .exited(1), "\(name)")
        }
        #expect(try await admin.run("logout", "apo").errors.contains("Its clients: api."))
    }
}
