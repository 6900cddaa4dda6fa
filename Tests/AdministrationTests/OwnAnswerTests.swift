import Foundation
import TestSupport
import Testing

@testable import Administration

@Suite("what the proxy answers by itself is not the upstream's", .timeLimit(.minutes(2)))
struct OwnAnswerTests {
    private func upstreams(_ admin: AdministeredProxy) async throws -> [String: [String: Any]] {
        let text = try await admin.run("status", "--json", "--exit-zero").output
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        let list = object?["upstreams"] as? [[String: Any]] ?? []
        return Dictionary(uniqueKeysWithValues: list.map { ($0["upstream"] as? String ?? "", $0) })
    }

    @Test func `503s for want of a sign-in are neither its server errors nor in its latency`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        for _ in 0..<4 { #expect(try await admin.proxy.get("http://api.test/").status == 503) }
        let upstream = try #require(try await upstreams(admin)["api.test"])
        #expect(upstream["requests"] as? Int == 4)
        #expect(upstream["server_errors"] as? Int == 0)
        #expect(upstream["answered_by_proxy"] as? Int == 4)
        #expect(upstream["mean_duration_seconds"] is NSNull)
        let status = try await admin.run("status", "--exit-zero").output
        #expect(
            status.contains(
                "api.test  client api  4 requests, 0 server errors, 4 answered by the proxy itself (503)\n"),
            "\(status)")
        var browser = Browser(admin)
        let page = try await browser.get("/").text
        #expect(!page.contains("p50"))
        #expect(page.contains("4 × 503 by the proxy itself"), "\(page)")
        // The program saw them nevertheless.
        #expect(
            try await admin.get("/metrics").text.contains(
                "heimdallr_requests_total{upstream=\"api.test\",code=\"503\"} 4"))
    }

    @Test func `an upstream that fails, or that can't be reached, is counted as before`() async throws {
        let port = try freePort()
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]),
            more: """
                  - {host: down.test, url: "http://127.0.0.1:\(port)", client: api, allow_plaintext: true}
                  - {host: part.test, url: "http://127.0.0.1:\(port)", paths: [/v1/]}
                """)
        try await admin.ready()
        for _ in 0..<2 { #expect(try await admin.proxy.get("http://down.test/").status == 502) }
        #expect(try await admin.proxy.get("http://api.test/").status == 200)
        let all = try await upstreams(admin)
        #expect(all["down.test"]?["server_errors"] as? Int == 2)
        #expect(all["down.test"]?["answered_by_proxy"] as? Int == 0)
        #expect(all["down.test"]?["mean_duration_seconds"] is Double)
        #expect(all["api.test"]?["answered_by_proxy"] as? Int == 0)
        #expect(all["api.test"]?["mean_duration_seconds"] is Double)
    }

    @Test func `requests for no upstream are shown in plain words`() async throws {
        let admin = try await AdministeredProxy()
        for _ in 0..<2 { #expect(try await admin.proxy.get("http://nobody.test/").status == 403) }
        let status = try await admin.run("status", "--exit-zero").output
        #expect(status.contains("  requests for no upstream: 2, all refused\n"), "\(status)")
        #expect(!status.contains("(none)") && !status.contains("unsigned"))
        var browser = Browser(admin)
        let page = try await browser.get("/").text
        #expect(page.contains("Requests for no upstream"), "\(page)")
        #expect(!page.contains("(none)"))
        let forward = try await RunningProxy(
            """
            proxy: {listen: "127.0.0.1:0", unmatched: forward, private_networks: ["127.0.0.0/8"]}
            admin: {listen: "127.0.0.1:0", socket: FOLDER/admin.sock}
            upstreams: [{host: a.test}]
            """)
        #expect(try await forward.get("http://127.0.0.1:\(admin.origin.port)/").status == 200)
        let plain = try await RunningProxy.run(
            ["status", "--socket", forward.directory.path(of: "admin.sock")]
        ).output
        #expect(
            plain.contains("  hosts that no upstream names, forwarded without a token: 1 request, 0 server errors"),
            "\(plain)")
    }
}
