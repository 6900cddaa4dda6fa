import Foundation
import TestSupport
import Testing

/// By `Fixtures/browse.py` in a real Chromium.
@Suite("every route of the admin port in a browser", .timeLimit(.minutes(5)))
struct BrowserRouteTests {
    private static let token = "admin-token-0123456789"

    private let web: PlayedWeb
    private let proxy: RunningProxy
    private let admin: String

    init() async throws {
        web = try PlayedWeb()
        proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: "\(web.url)/token", client: web.client,
                admin: "token: {file: FOLDER/admin-token}\nquitquitquit: true",
                upstreams: ProxyConfiguration.upstream(url: web.url), files: ["admin-token": Self.token]))
        admin = "http://\(try await proxy.administration().address)"
    }

    private static let entering = ["see:requires its token", "type:token=\(token)", "click:Go on"]

    @Test func `a sign-in from a chat leads through the token's form to the server, and later without the form`()
        async throws
    {
        let login = web.link(to: "\(admin)/login/api")
        let seen = try await BrowserSteps()(
            login + Self.entering
                + ["at:\(web.url)/authorize", "click:Allow", "see:Signed in", "at:\(admin)/callback?done="]
                // The session serves other sites' links. The sign-in still needs a press.
                + login + ["see:Sign in “api”?", "not:requires its token", "click:Sign in", "at:\(web.url)/authorize"]
                + web.link(to: "\(admin)/") + ["see:Clients", "not:requires its token"])
        #expect(seen == [])
    }

    @Test func `what other programs of the host have stored in the browser hinders no page and no sign-in`()
        async throws
    {
        let login =
            ["open:\(admin)/login/api"] + Self.entering + ["at:\(web.url)/authorize", "click:Allow", "see:Signed in"]
        let seen = try await BrowserSteps()(
            ["open:\(admin)/livez", "cookies:3x3900"] + login
                + ["open:\(admin)/livez", "cookies:100x4000", "open:\(admin)/login/api", "at:\(web.url)/authorize"]
                + ["click:Allow", "see:Signed in", "click:To the overview", "see:Clients", "see:Ready"])
        #expect(seen == [])
    }

    @Test func `no form ends elsewhere than its answer says, on any route`() async throws {
        let routes = try Self.routes()
        #expect(routes.contains { $0 == ("POST", "/enter") } && routes.count > 15)
        let paths = routes.map { ($0.0, $0.1.replacing("{client}", with: "api").replacing("{ticket}", with: "x")) }
        let kept = paths.filter { !["/quitquitquit", "/events"].contains($0.1) }
        var steps = ["open:\(admin)/"] + Self.entering + ["see:Clients"]
        for (_, path) in kept.filter({ $0.0 == "GET" }) {
            steps += ["open:\(admin)\(path)", "tell:document.readyState"]
        }
        for (_, path) in kept.filter({ $0.0 == "POST" }) { steps += ["open:\(admin)/", "see:Clients", "post:\(path)"] }
        let seen = try await BrowserSteps()(steps)
        let posted = seen.filter { $0.hasPrefix("posted ") }
        #expect(posted.count == kept.count { $0.0 == "POST" })
        for line in posted { #expect(line.split(separator: " ").last?.hasPrefix(admin) == true, "\(line)") }
        #expect(seen.filter { $0.contains("form-action") || $0.contains("Content Security Policy") } == [])
    }

    /// The routes that the sources of the port add, and the default callback.
    private static func routes() throws -> [(String, String)] {
        let folder = "\(Repository.root)/Sources/Administration"
        let files = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
        let sources = try files.filter { $0.hasSuffix("Routes.swift") && !$0.contains("CommandRoutes") }
            .map { try String(contentsOfFile: "\(folder)/\($0)", encoding: .utf8) }.joined()
        let found = sources.matches(of: /\.on\("([A-Z]+)", "([^"]+)"/).map { (String($0.1), String($0.2)) }
        return found + [("GET", "/callback"), ("POST", "/callback"), ("GET", "/livez"), ("GET", "/page.css")]
    }
}
