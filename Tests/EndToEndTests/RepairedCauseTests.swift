import Foundation
import TestSupport
import Testing

@Suite("a refused client asks again as soon as the cause is repaired", .timeLimit(.minutes(3)))
struct RepairedCauseTests {
    /// A token endpoint that knows the secret `new`.
    private static func endpoint() throws -> TokenEndpoint {
        try TokenEndpoint { request, _ in
            request["client_secret"] == "new" ? .token("T1") : .error("invalid_client", status: 401)
        }
    }

    private static func proxy(_ endpoint: TokenEndpoint, _ secret: String, _ files: [String: String]) async throws
        -> (RecordingOrigin, RunningProxy)
    {
        let origin = try RecordingOrigin()
        let client = ProxyConfiguration.client(
            tokenEndpoint: endpoint.url,
            "client_id: a\ntoken_endpoint_auth_method: client_secret_post\nclient_secret: \(secret)")
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                admin: "", clients: [client], upstreams: [ProxyConfiguration.upstream(url: origin.url)], files: files))
        return (origin, proxy)
    }

    @Test func `the output of a command is read again after a refusal, and used at once`() async throws {
        let endpoint = try Self.endpoint()
        // The first run gives the former secret, each later one the secret that the server knows.
        let secret = "{command: [/bin/sh, -c, 'cat FOLDER/secret; printf new > FOLDER/secret'], refresh: 24h}"
        let (origin, proxy) = try await Self.proxy(endpoint, secret, ["secret": "old"])
        try await eventually("the token", within: .seconds(60)) {
            try await proxy.get("http://api.test/x").status == 200
        }
        #expect(endpoint.requests.first?["client_secret"] == "old")
        #expect(origin.requests.last?.fields.value("Authorization") == "Bearer T1")
    }

    @Test func `a changed file ends a backoff of minutes`() async throws {
        let endpoint = try Self.endpoint()
        let (origin, proxy) = try await Self.proxy(endpoint, "{file: FOLDER/secret}", ["secret": "old"])
        // Each refusal lengthens the backoff, up to five minutes.
        for count in 1...7 {
            _ = try await endpoint.requests(count)
            _ = try await RunningProxy.run(["refresh", "api", "--socket", proxy.directory.path + "/admin.sock"])
        }
        let count = endpoint.requests.count
        try proxy.directory.write("new", to: "secret")
        try await eventually("a request with the new secret", within: .seconds(60)) {
            endpoint.requests.count > count && endpoint.requests.last?["client_secret"] == "new"
        }
        #expect(try await proxy.get("http://api.test/x").status == 200)
        #expect(origin.requests.count == 1)
    }
}
