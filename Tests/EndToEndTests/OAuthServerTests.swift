import Foundation
import TestSupport
import Testing

@Suite("a token of django-oauth-toolkit reaches the API it protects", .timeLimit(.minutes(3)))
struct OAuthServerTests {
    /// The fixture API's report of an accepted request.
    struct Report: Decodable {
        var method: String
        var target: String
        var body: String
        var client: String
        var user: String?
        var scope: String

        init(_ response: RawResponse) throws {
            guard response.status == 200 else { throw TestFailure("\(response.status): \(response.text)") }
            self = try JSONDecoder().decode(Report.self, from: Data(response.body))
        }
    }

    private func proxy(_ server: DjangoOAuthToolkit, client: String, files: [String: String]) async throws
        -> RunningProxy
    {
        try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: server.tokenEndpoint, client: client,
                upstreams: ProxyConfiguration.upstream(url: server.url), files: files))
    }

    @Test(arguments: ["client_secret_basic", "client_secret_post"])
    func `client credentials get a token that the API takes`(method: String) async throws {
        let server = try await DjangoOAuthToolkit()
        let proxy = try await proxy(
            server,
            client: """
                client_id: \(DjangoOAuthToolkit.machine.id)
                client_secret: {file: FOLDER/secret}
                token_endpoint_auth_method: \(method)
                scope: [read]
                """, files: ["secret": DjangoOAuthToolkit.machine.secret])
        let response = try await proxy.send("POST", "http://api.test/api/things?a=1%2F2", body: "hello")
        let report = try Report(response)
        #expect(report.method == "POST")
        #expect(report.target == "/api/things?a=1%2F2")
        #expect(report.body == "hello")
        #expect(report.client == "machine")
        #expect(report.scope == "read")
    }

    @Test func `the password grant gets a token in the user's name`() async throws {
        let server = try await DjangoOAuthToolkit()
        let proxy = try await proxy(
            server,
            client: """
                grant_type: password
                allow_deprecated: true
                client_id: \(DjangoOAuthToolkit.person.id)
                client_secret: {file: FOLDER/secret}
                username: \(DjangoOAuthToolkit.user.name)
                password: {file: FOLDER/password}
                scope: read write
                """,
            files: ["secret": DjangoOAuthToolkit.person.secret, "password": DjangoOAuthToolkit.user.password])
        let report = try Report(try await proxy.get("http://api.test/api/mine"))
        #expect(report.user == "ada")
        #expect(Set(report.scope.split(separator: " ")) == ["read", "write"])
    }

    @Test func `the password grant of a client without a secret gets a token`() async throws {
        let server = try await DjangoOAuthToolkit()
        let proxy = try await proxy(
            server,
            client: """
                grant_type: password
                allow_deprecated: true
                client_id: \(DjangoOAuthToolkit.publicClient)
                username: \(DjangoOAuthToolkit.user.name)
                password: {file: FOLDER/password}
                """, files: ["password": DjangoOAuthToolkit.user.password])
        #expect(try Report(try await proxy.get("http://api.test/api/mine")).client == "public")
    }

    @Test func `a refresh follows the server's rotation, again and again`() async throws {
        // The server revokes a refresh token when it is used, and the whole family when one is used twice.
        let server = try await DjangoOAuthToolkit(accessTokenSeconds: 4)
        let first = try await server.refreshToken()
        let proxy = try await proxy(
            server,
            client: """
                grant_type: refresh_token
                client_id: \(DjangoOAuthToolkit.person.id)
                client_secret: {file: FOLDER/secret}
                refresh_token: {file: FOLDER/refresh}
                """, files: ["secret": DjangoOAuthToolkit.person.secret, "refresh": first])
        try await eventually("three rotations", within: .seconds(60)) {
            let report = try Report(try await proxy.get("http://api.test/api/mine"))
            #expect(report.user == "ada")
            return try await server.tokens().refreshRevoked >= 3
        }
        #expect(!proxy.log.contains(first))
    }

    @Test func `fifty requests at once are one token request`() async throws {
        let server = try await DjangoOAuthToolkit()
        let proxy = try await proxy(
            server,
            client: """
                client_id: \(DjangoOAuthToolkit.machine.id)
                client_secret: {file: FOLDER/secret}
                """, files: ["secret": DjangoOAuthToolkit.machine.secret])
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<50 {
                group.addTask { try await proxy.get("http://api.test/api/\(number)").status }
            }
            for try await status in group { #expect(status == 200) }
        }
        #expect(server.tokenRequests == 1)
        #expect(try await server.tokens().access == 1)
    }

    @Test func `a token request over TLS trusts the client's own CA`() async throws {
        let server = try await DjangoOAuthToolkit()
        let authority = try await PrivateCA()
        let front = try await Nginx(
            certificate: try await authority.server(),
            locations: "location / { proxy_pass \(server.url); proxy_set_header Host $http_host; }")
        let proxy = try await RunningProxy(
            """
            proxy: {listen: 127.0.0.1:0}
            clients:
              api:
                token_endpoint: https://localhost:\(front.httpsPort)/o/token/
                client_id: \(DjangoOAuthToolkit.machine.id)
                client_secret: {file: FOLDER/secret}
                tls: {ca_file: \(authority.certificateFile)}
            upstreams:
              - host: api.test
                url: https://localhost:\(front.httpsPort)
                client: api
                tls: {ca_file: \(authority.certificateFile)}
            """, files: ["secret": DjangoOAuthToolkit.machine.secret])
        #expect(try Report(try await proxy.get("http://api.test/api/x")).client == "machine")
    }
}
