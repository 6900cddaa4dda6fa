import TestSupport
import Testing

/// A web page can send requests to every listener of the machine that its browser runs on. `Fixtures/web_pages.py` tries
/// all the ways that a page has, in a real Chromium.
@Suite("web pages in a browser", .timeLimit(.minutes(4)))
struct WebPageTests {
    private let origin: RecordingOrigin
    private let endpoint: TokenEndpoint
    private let proxy: RunningProxy

    init() async throws {
        origin = try RecordingOrigin {
            try $0.respond(200, fields: [("Content-Type", "text/html")], body: "<!doctype html><title>api</title>")
        }
        endpoint = try .plain()
        proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: endpoint.url,
                upstreams: ProxyConfiguration.upstream("closed.test", url: origin.url, "listen: 127.0.0.1:0"),
                ProxyConfiguration.upstream(
                    "listed.test", url: origin.url, "listen: 127.0.0.1:0\nhosts: [gateway.test]"),
                ProxyConfiguration.upstream("open.test", url: origin.url, "listen: 127.0.0.1:0\nbrowsers: true")),
            listeners: 4)
    }

    /// Makes the browser try everything, and returns the paths.
    private func browse(_ sites: [(name: String, host: String, listener: Int)]) async throws -> [String] {
        let arguments = sites.map { "\($0.name)=http://\($0.host):\(proxy.listeners[$0.listener].port)" }
        let folder = try TemporaryDirectory()
        let output = try await ChildProcess.output(
            of: [try Repository.python(), fixture("web_pages.py")] + arguments,
            environment: ["HOME": folder.path, "http_proxy": nil, "https_proxy": nil, "SE_OFFLINE": "true"],
            within: .seconds(200))
        return output.split(separator: "\n").map(String.init)
    }

    /// Statuses in the access log, by path, once each of `paths` is there.
    private func statuses(_ paths: [String]) async throws -> [String: Set<String>] {
        do {
            return try await eventually("a line in the access log for each path") {
                let found = self.statuses
                return paths.allSatisfy { found[$0] != nil } ? found : nil
            }
        } catch {
            throw TestFailure("not in the access log: \(paths.filter { statuses[$0] == nil })\n\(proxy.log)")
        }
    }

    private var statuses: [String: Set<String>] {
        var found: [String: Set<String>] = [:]
        for line in proxy.log.split(separator: "\n") {
            var path = ""
            for word in line.split(separator: " ") {
                if word.hasPrefix("path=") { path = String(word.dropFirst(5)) }
                if word.hasPrefix("status="), !path.isEmpty { found[path, default: []].insert(String(word)) }
            }
        }
        return found
    }

    @Test func `no page reaches an upstream through its listener, by rebinding or by form, nor through the proxy's`()
        async throws
    {
        let paths = try await browse([
            ("ip", "127.0.0.1", 1), ("localhost", "localhost", 1), ("rebound", "rebound.test", 1),
            // A listed name is not loopback to a browser: it does not say there that a page sends.
            ("own", "rebound.test", 1), ("listed", "gateway.test", 2), ("forward", "127.0.0.1", 0),
        ])
        #expect(paths.count >= 5 * 35)
        let statuses = try await statuses(paths)
        for path in paths {
            #expect(statuses[path] == ["status=403"], "\(path)")
        }
        #expect(origin.connections.isEmpty)
        // Programs still come in, by the same names.
        for (host, listener) in [("localhost", 1), ("gateway.test", 2)] {
            let response = try await RawClient.exchange(
                port: proxy.listeners[listener].port,
                "GET / HTTP/1.1\r\nHost: \(host):\(proxy.listeners[listener].port)\r\n"
                    + "User-Agent: Mozilla/5.0 (Linux; en-US) PowerShell/7.4\r\n\r\n")
            #expect(response.status == 200)
        }
    }

    @Test func `with browsers: true pages come in, though not by rebinding`() async throws {
        let paths = try await browse([("ip", "127.0.0.1", 3), ("own", "rebound.test", 3)])
        let statuses = try await statuses(paths)
        for path in paths where path.hasPrefix("/own/") { #expect(statuses[path] == ["status=403"]) }
        let admitted = paths.filter { $0.hasPrefix("/ip/") }
        #expect(admitted.count >= 35)
        for path in admitted {
            #expect(statuses[path] == ["status=200"], "\(path)")
            let request = origin.requests.first { $0.target.prefix { $0 != "?" } == path }
            #expect(request?.values("Authorization") == ["Bearer \(token)"], "\(path)")
        }
    }
}
