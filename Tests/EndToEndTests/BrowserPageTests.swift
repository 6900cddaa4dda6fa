import Foundation
import TestSupport
import Testing

/// By `Fixtures/browse.py` in a real Chromium.
@Suite("what the page shows in a browser", .timeLimit(.minutes(4)))
struct BrowserPageTests {
    /// Notes whatever the page says about the connection.
    private static let listening = """
        early:addEventListener("DOMContentLoaded", () => {
          const place = document.getElementById("connection");
          window.said = [];
          if (place) new MutationObserver(() => window.said.push(place.textContent)).observe(place, { childList: true });
        })
        """

    private static func proxy(_ web: PlayedWeb) async throws -> RunningProxy {
        let dead = try TokenEndpoint([.json(#"{"error":"invalid_client"}"#, status: 401)])
        return try await RunningProxy(
            ProxyConfiguration(
                admin: "",
                clients: [
                    ProxyConfiguration.client(tokenEndpoint: "\(web.url)/token", web.client),
                    ProxyConfiguration.client("dead", tokenEndpoint: dead.url),
                ],
                upstreams: [
                    ProxyConfiguration.upstream(url: web.url), "  - {host: dead.test, client: dead, token_wait: 1s}",
                ]))
    }

    @Test func `the 33rd page has no events, and does not say that the proxy can't be reached`() async throws {
        let proxy = try await Self.proxy(try PlayedWeb())
        let admin = try await proxy.administration()
        var readers: [RawClient] = []
        for _ in 0..<32 {
            let reader = try await RawClient.connect(port: admin.port)
            try await reader.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            _ = try await reader.read(until: "retry: 3000\n\n")
            readers.append(reader)
        }
        let seen = try await BrowserSteps()([
            Self.listening, "open:http://\(admin.address)/", "see:Clients",
            "until:performance.getEntriesByType('resource').some((entry) => entry.name.endsWith('/fragment'))",
            "tell:window.said.join()",
        ])
        #expect(seen.filter { !$0.hasPrefix("complaint") } == ["told "])
        withExtendedLifetime(readers) {}
    }

    @Test(arguments: ["prefers-color-scheme=light", "prefers-color-scheme=dark", "forced-colors=active"])
    func `text has the contrast of WCAG 2.2 AA`(media: String) async throws {
        let web = try PlayedWeb()
        let proxy = try await Self.proxy(web)
        let admin = "http://\(try await proxy.administration().address)"
        _ = try await proxy.get("http://dead.test/")
        let seen = try await BrowserSteps()([
            "media:\(media)", "open:\(admin)/", "see:Clients", "contrast:", "click:Sign in", "click:Allow",
            "see:Signed in",
            "contrast:", "open:\(admin)/login/nobody", "see:No such client", "contrast:", "open:\(admin)/", "see:Ready",
            "contrast:",
        ])
        #expect(seen == [])
    }
}
