import Foundation
import FoundationNetworking
import Playground
import TestSupport
import Testing

/// Over real sockets.
@Suite struct PlaygroundTests {
    private func token(from playground: Playground) async throws -> String {
        let answer = try await playground.post("token", "grant_type=client_credentials")
        #expect(answer.status == 200)
        #expect(try answer.json["token_type"] as? String == "Bearer" && answer.json["expires_in"] as? Int == 20)
        return try #require(try answer.json["access_token"] as? String)
    }

    private func call(
        _ playground: Playground, _ path: String = "/hello", method: String = "GET", authorization: String? = nil,
        body: String = ""
    ) async throws -> RawResponse {
        var fields = ["X-Mine": "kept"]
        fields["Authorization"] = authorization
        return try await playground.send(method, "http://\(playground.apiAuthority)\(path)", fields: fields, body: body)
    }

    @Test func `a request without a token gets a challenge that names no error`() async throws {
        try await withPlayground { playground in
            for authorization in [nil, "Basic YTpi", "Bearer"] {
                let answer = try await call(playground, authorization: authorization)
                #expect(answer.status == 401)
                let challenge = try #require(answer.field("WWW-Authenticate"))
                #expect(challenge.hasPrefix("Bearer realm=\"playground\", resource_metadata=\""))
                #expect(!challenge.contains("error"))
            }
        }
    }

    @Test(arguments: ["Bearer nonsense", "bearer also-nonsense"]) func `a wrong token is an invalid token`(
        value: String
    ) async throws {
        try await withPlayground { playground in
            let answer = try await call(playground, authorization: value)
            #expect(answer.status == 401)
            let challenge = try #require(answer.field("WWW-Authenticate"))
            #expect(challenge == "Bearer realm=\"playground\", error=\"invalid_token\"")
        }
    }

    @Test func `with a token the API tells what it received, and never the whole token`() async throws {
        try await withPlayground { playground in
            let token = try await token(from: playground)
            let answer = try await call(
                playground, "/a/b?q=1&copy=\(token)", method: "PUT", authorization: "Bearer \(token)",
                body: String(repeating: "7", count: 300_000))
            #expect(answer.status == 200)
            #expect(answer.field("Cache-Control") == "no-store")
            #expect(!answer.text.contains(token))
            let json = try answer.json
            let shown = "\(token.prefix(4))… (43 characters)"
            #expect(json["method"] as? String == "PUT")
            #expect(json["path"] as? String == "/a/b?q=1&copy=\(shown)")
            #expect(json["host"] as? String == playground.apiAuthority)
            #expect(json["token"] as? String == shown)
            #expect(json["body_bytes"] as? Int == 300_000)
            let headers = try #require(json["headers"] as? [String: String])
            #expect(headers["Authorization"] == "Bearer \(shown)")
            #expect(headers["X-Mine"] == "kept")
        }
    }

    @Test func `a token of one playground is worth nothing to another`() async throws {
        try await withPlayground { one in
            let token = try await token(from: one)
            try await withPlayground { other in
                #expect(one.credentials.clientSecret != other.credentials.clientSecret)
                #expect(one.apiAuthority != other.apiAuthority)
                let answer = try await call(other, authorization: "Bearer \(token)")
                #expect(answer.status == 401)
            }
        }
    }

    @Test func `an answer of the playground to HEAD has no body`() async throws {
        try await withPlayground { playground in
            let token = try await token(from: playground)
            let answer = try await call(playground, method: "HEAD", authorization: "Bearer \(token)")
            #expect(answer.status == 200)
            #expect(answer.body.isEmpty)
        }
    }

    @Test func `a wrong secret is 401 with a Basic challenge`() async throws {
        try await withPlayground { playground in
            let answer = try await playground.post("token", "grant_type=client_credentials", secret: "wrong")
            #expect(answer.status == 401)
            #expect(answer.field("WWW-Authenticate") == "Basic realm=\"playground\"")
            #expect(try answer.json["error"] as? String == "invalid_client")
        }
    }

    @Test func `a token request that is no form, or too large, is refused`() async throws {
        try await withPlayground { playground in
            let secret = playground.credentials.clientSecret
            let json = try await playground.post("token", "{}", secret: secret, type: "application/json")
            #expect(json.status == 400)
            #expect(try await playground.post("token", "x=" + String(repeating: "y", count: 20_000)).status == 413)
        }
    }

    @Test func `a revoked token opens nothing`() async throws {
        try await withPlayground { playground in
            let token = try await token(from: playground)
            #expect(try await playground.post("revoke", "token=\(token)").status == 200)
            #expect(try await call(playground, authorization: "Bearer \(token)").status == 401)
        }
    }

    @Test func `a playground that was stopped does not listen`() async throws {
        let playground = try await Playground.start()
        #expect(try await call(playground).status == 401)
        await playground.stop()
        await playground.stop()
        await #expect(throws: (any Error).self) { _ = try await call(playground) }
    }

    @Test func `a client that stays connected does not keep the playground from stopping`() async throws {
        let playground = try await Playground.start()
        // A session keeps its connection open for the next request.
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        let url = try #require(URL(string: "http://\(playground.apiAuthority)/"))
        let (_, response) = try await session.data(from: url)
        #expect((response as? HTTPURLResponse)?.statusCode == 401)
        await playground.stop()
        await #expect(throws: URLError.self) { _ = try await session.data(from: url) }
    }

    @Test func `credentials of the playground print without their secrets`() {
        let credentials = PlaygroundCredentials()
        for text in ["\(credentials)", String(reflecting: credentials)] {
            #expect(!text.contains(credentials.clientSecret))
            #expect(!text.contains(credentials.password))
        }
    }
}
