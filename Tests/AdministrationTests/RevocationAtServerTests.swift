import Foundation
import TestSupport
import Testing

@Suite("logout at django-oauth-toolkit", .timeLimit(.minutes(3)))
struct RevocationAtServerTests {
    private func proxy(_ server: DjangoOAuthToolkit, client: String, secret: String) async throws -> (
        RunningProxy, String
    ) {
        let proxy = try await RunningProxy(
            """
            proxy: {listen: "127.0.0.1:0"}
            admin: {listen: "127.0.0.1:0", socket: FOLDER/admin.sock}
            clients:
              api:
                token_endpoint: \(server.tokenEndpoint)
                revocation_endpoint: \(server.url)/o/revoke_token/
                allow_plaintext: true
                exportable: true
                client_secret: {file: FOLDER/secret}
            \(client)
            upstreams:
              - {host: api.test, url: "\(server.url)", client: api, allow_plaintext: true}
            """, files: ["secret": secret, "password": DjangoOAuthToolkit.user.password])
        return (proxy, proxy.directory.path(of: "admin.sock"))
    }

    private func status(of token: String, at server: DjangoOAuthToolkit) async throws -> Int {
        try await RawClient.exchange(
            port: server.port,
            "GET /api/x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer \(token)\r\nConnection: close\r\n\r\n"
        ).status
    }

    @Test func `both tokens of a user are dead at the server, and the next request gets new ones`() async throws {
        let server = try await DjangoOAuthToolkit()
        let (proxy, socket) = try await proxy(
            server,
            client: """
                    grant_type: password
                    allow_deprecated: true
                    client_id: \(DjangoOAuthToolkit.person.id)
                    username: \(DjangoOAuthToolkit.user.name)
                    password: {file: FOLDER/password}
                """, secret: DjangoOAuthToolkit.person.secret)
        #expect(try await proxy.get("http://api.test/api/x").status == 200)
        let token = try await RunningProxy.run(["token", "api", "--socket", socket]).output.trimmingSuffix("\n")
        #expect(try await status(of: token, at: server) == 200)
        let run = try await RunningProxy.run(["logout", "api", "--socket", socket])
        #expect(run.ending == .exited(0), "\(run.errors)")
        #expect(run.output.contains("The server has revoked the refresh token."))
        #expect(try await status(of: token, at: server) == 401)
        let left = try await server.tokens()
        #expect(left.access == 0)
        #expect(left.refresh - left.refreshRevoked == 0)
        #expect(try await proxy.get("http://api.test/api/x").status == 200)
    }

    @Test func `a machine's token is dead at the server`() async throws {
        let server = try await DjangoOAuthToolkit()
        let (proxy, socket) = try await proxy(
            server, client: "    client_id: \(DjangoOAuthToolkit.machine.id)", secret: DjangoOAuthToolkit.machine.secret
        )
        #expect(try await proxy.get("http://api.test/api/x").status == 200)
        let token = try await RunningProxy.run(["token", "api", "--socket", socket]).output.trimmingSuffix("\n")
        #expect(try await RunningProxy.run(["logout", "api", "--socket", socket]).ending == .exited(0))
        #expect(try await status(of: token, at: server) == 401)
    }
}

extension String {
    fileprivate func trimmingSuffix(_ suffix: String) -> String {
        hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
    }
}
