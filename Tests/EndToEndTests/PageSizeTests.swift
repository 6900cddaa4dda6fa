import Foundation
import TestSupport
import Testing

/// Measured by `Fixtures/page_size.py` in a real Chromium.
@Suite("the page on a telephone", .timeLimit(.minutes(4)))
struct PageSizeTests {
    /// Two screens of 390 x 844.
    private static let twoScreens = 2 * 844
    private static let description =
        "Client authentication failed: the credentials that were presented have expired on 2026-01-31; ask the owner of "
        + "the application registration for new ones (correlation 5f0c1d2e-8b1a-4c36-9e0f-5a6b7c8d9e0f)"
    private static let names = [
        "billing-production", "team-calendar", "warehouse-reports", "mail-on-the-wall", "archive-of-everything",
    ]

    private struct Seen {
        var lines: [String]

        func size(_ screen: String) -> (width: Int, height: Int, sideways: Int)? {
            let numbers = lines.first { $0.hasPrefix("\(screen) ") }?.split(separator: " ").compactMap { Int($0) } ?? []
            return numbers.count == 3 ? (numbers[0], numbers[1], numbers[2]) : nil
        }

        func text(_ kind: String) -> String {
            lines.first { $0.hasPrefix("\(kind) ") }.map { String($0.dropFirst(kind.count + 1)) } ?? ""
        }

        func all(_ kind: String) -> [String] {
            lines.filter { $0.hasPrefix("\(kind) ") }.map { String($0.dropFirst(kind.count + 1)) }
        }
    }

    /// Five clients and an upstream for each, of which each was asked for something three times. The first and the last
    /// upstream share a host.
    private func look(_ clients: [String], settled: String, asking count: Int = 3) async throws -> Seen {
        let resources = Self.names.dropLast().map { (host: $0, path: "/v1/") } + [(host: Self.names[0], path: "/v2/")]
        let upstreams = zip(Self.names, resources).map { name, resource in
            "  - {host: \(resource.host).example.com, client: \(name), paths: [\(resource.path)], token_wait: 1s}"
        }
        let proxy = try await RunningProxy(ProxyConfiguration(admin: "", clients: clients, upstreams: upstreams))
        let port = try await proxy.administration().port
        try await eventually("all clients have had an answer") {
            proxy.log.split(separator: "\n").count { $0.contains(settled) } >= 3
        }
        for resource in resources {
            for _ in 0..<count { _ = try await proxy.get("http://\(resource.host).example.com\(resource.path)") }
        }
        let folder = try TemporaryDirectory()
        let output = try await ChildProcess.output(
            of: [
                try Repository.python(), fixture("page_size.py"), folder.path(of: "profile"),
                ProcessInfo.processInfo.environment["HEIMDALLR_TEST_PICTURES"] ?? folder.path,
                "http://127.0.0.1:\(port)/",
            ], environment: ["HOME": folder.path, "http_proxy": nil, "https_proxy": nil, "SE_OFFLINE": "true"],
            within: .seconds(120))
        return Seen(lines: output.split(separator: "\n").map(String.init))
    }

    private func expectFit(_ seen: Seen) throws {
        let telephone = try #require(seen.size("telephone"))
        let wide = try #require(seen.size("wide"))
        #expect(telephone.height <= Self.twoScreens, "\(telephone)")
        #expect(telephone.sideways == 0 && telephone.width == 390)
        #expect(wide.sideways == 0 && wide.width == 1280)
        #expect(seen.all("cut") == [])
        #expect(seen.lines.contains("fits"))
        #expect(seen.lines.contains("kept"))
    }

    @Test func `five clients that all fail fit two screens, in red, and nothing that they say is lost`() async throws {
        let refusing = try TokenEndpoint([.error("invalid_client", status: 401, description: Self.description)])
        let lost = try TokenEndpoint([.html(404)])
        let path = "realms/production/protocol/openid-connect"
        let dead = try freePort()
        func machine(_ name: String, _ url: String) -> String {
            "  \(name): {token_endpoint: \"\(url)\", client_id: c, client_secret: {file: FOLDER/secret}, "
                + "allow_plaintext: true, scope: [one.read, one.write, another.read]}"
        }
        func person(_ name: String, _ more: String) -> String {
            "  \(name): {token_endpoint: \"https://login.example.com/\(path)/token\", client_id: c, \(more)}"
        }
        let seen = try await look(
            [
                machine(Self.names[0], refusing.url + "/\(path)/token"),
                person(
                    Self.names[1],
                    "grant_type: authorization_code, authorization_endpoint: \"https://login.example.com/\(path)/auth\", "
                        + "scope: [calendar.read, calendar.write]"),
                machine(Self.names[2], "https://127.0.0.1:\(dead)/\(path)/token"),
                person(
                    Self.names[3],
                    "grant_type: device_code, device_authorization_endpoint: \"https://login.example.com/\(path)/device\""
                ),
                machine(Self.names[4], lost.url + "/\(path)/token"),
            ], settled: "no token from the token endpoint")
        try expectFit(seen)
        let folded = seen.text("folded")
        // Faults and their remedies are visible without opening anything.
        for words in [
            "Refused: invalid_client", "No connection to the server", "The server answers 404", "Nobody is signed in",
            "Sign in", "Refresh now", "Sign-in needed", "No token",
        ] { #expect(folded.contains(words), "\(words)\n\(folded)") }
        let whole = seen.text("whole")
        for words in [
            String(Self.description.prefix(60)), "connection refused", "127.0.0.1:\(dead)/\(path)/token",
            "What to do: ",
            "Redirect URI to register at the server: http://127.0.0.1:", "login.example.com/\(path)/token", "curl -x",
        ] { #expect(whole.contains(words), "\(words)\n\(whole)") }
        #expect(Set(seen.all("reddish")).isSuperset(of: [Self.names[0], Self.names[2], Self.names[4]]))
        let positions = Self.names.compactMap { folded.range(of: "\($0) ")?.lowerBound }
        #expect(positions.count == 5)
        let (failing, waiting) = ([0, 2, 4].map { positions[$0] }, [1, 3].map { positions[$0] })
        #expect((failing.max() ?? folded.endIndex) < (waiting.min() ?? folded.startIndex))
    }

    @Test func `five clients that are well fit two screens`() async throws {
        let endpoint = try TokenEndpoint([.token(token, extra: #""scope":"one.read one.write another.read""#)])
        let seen = try await look(
            Self.names.map {
                "  \($0): {token_endpoint: \"\(endpoint.url)/realms/production/protocol/openid-connect/token\", client_id: c, "
                    + "client_secret: {file: FOLDER/secret}, allow_plaintext: true, scope: [one.read, one.write, another.read]}"
            }, settled: "token acquired", asking: 0)
        try expectFit(seen)
        let folded = seen.text("folded")
        for words in ["Ready", "59 min", "Refresh now", "Details"] { #expect(folded.contains(words), "\(folded)") }
        for words in ["scopes: one.read", "\(endpoint.url)/realms"] { #expect(seen.text("whole").contains(words)) }
        #expect(seen.all("reddish") == [])
    }
}
