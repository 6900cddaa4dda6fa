import Foundation
import TestSupport
import Testing

@testable import Administration

@Suite("why a connection failed is shown, with its address", .timeLimit(.minutes(3)))
struct CauseTests {
    private func proxy(_ clients: String, _ upstreams: String) async throws -> RunningProxy {
        try await RunningProxy(
            ProxyConfiguration(
                admin: "", clients: [clients], upstreams: [upstreams], files: ["secret": clientSecret]))
    }

    private func client(_ name: String, _ url: String) -> String {
        "  \(name): {token_endpoint: \"\(url)\", client_id: c, client_secret: {file: FOLDER/secret}, allow_plaintext: true}\n"
    }

    private func page(of proxy: RunningProxy) async throws -> String {
        let port = try await proxy.administration().port
        let text = try await RawClient.exchange(
            port: port, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        ).text
        return text.replacing("&#x2F;", with: "/").replacing("&amp;", with: "&").replacing("&#39;", with: "'")
    }

    @Test func `status and page tell why a token endpoint was not reached, with its address`()
        async throws
    {
        // Nobody here trusts its certificate.
        let server = try await Nginx.secure()
        let refused = "http://127.0.0.1:\(try freePort())/token"
        let unknown = "https://no-such-host.invalid/token"
        let tls = "https://localhost:\(server.httpsPort)/token"
        let clients = client("a", refused) + client("b", unknown) + client("c", tls)
        let upstreams = "  [{host: a.test, client: a}, {host: b.test, client: b}, {host: c.test, client: c}]"
        let proxy = try await proxy(clients, upstreams)
        try await eventually("all have failed") {
            Set(proxy.log.matches(of: /no token from the token endpoint.* client=(\w)/).map { String($0.1) }).count == 3
        }
        let status = try await RunningProxy.run(["status", "--socket", proxy.directory.path(of: "admin.sock")]).output
        let json = try await RunningProxy.run(
            ["status", "--json", "--socket", proxy.directory.path(of: "admin.sock")]
        ).output
        let page = try await page(of: proxy)
        for (place, text) in [("status", status), ("json", json), ("page", page)] {
            for words in [
                refused, unknown, tls, "connection refused", "the name can't be resolved",
                "SSL certificate problem: ",
            ] { #expect(text.contains(words), "\(place): \(words)\n\(text)") }
            #expect(!text.contains(clientSecret))
        }
        #expect(status.contains("  asked: \(refused)\n"), "\(status)")
        #expect(status.contains("  cause: connection refused: "), "\(status)")
        try await server.stop()
    }

    @Test func `status and page tell why an upstream was not reached, with its address`() async throws {
        // Nobody here trusts its certificate.
        let server = try await Nginx.secure()
        let endpoint = try TokenEndpoint([.token(accessToken)])
        let port = try freePort()
        let proxy = try await proxy(
            client("api", endpoint.url),
            """
              - {host: refused.test, client: api, allow_plaintext: true, url: "http://127.0.0.1:\(port)"}
              - {host: no-such-host.invalid, client: api}
              - {host: tls.test, client: api, url: "https://localhost:\(server.httpsPort)/v1"}
            """)
        for host in ["refused.test", "no-such-host.invalid", "tls.test"] {
            #expect(try await proxy.get("http://\(host)/x?secret=\(accessToken)").status == 502)
        }
        let socket = proxy.directory.path(of: "admin.sock")
        let status = try await RunningProxy.run(["status", "--socket", socket]).output
        let json = try await RunningProxy.run(["status", "--json", "--socket", socket]).output
        for (place, text) in [("status", status), ("json", json), ("page", try await page(of: proxy))] {
            for words in [
                "http://127.0.0.1:\(port)", "https://no-such-host.invalid", "https://localhost:\(server.httpsPort)/v1",
                "connection refused", "the name can't be resolved", "SSL certificate problem: ",
            ] { #expect(text.contains(words), "\(place): \(words)\n\(text)") }
            #expect(!text.contains(accessToken))
        }
        #expect(
            status.firstMatch(of: #/ {4}last failure \d+ s ago at http://127\.0\.0\.1:\d+: connection refused: /#)
                != nil,
            "\(status)")
        try await server.stop()
    }
}
