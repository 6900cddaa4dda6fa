import Foundation
import TestSupport
import Testing

/// A proxy whose admin port has nginx before it.
struct FrontedProxy {
    static let token = "admin-token-0123456789"

    let web: PlayedWeb
    private let nginx: Nginx
    let proxy: RunningProxy
    /// Address of nginx.
    let outside: String

    /// - Parameters:
    ///   - locations: of nginx; `ADMIN` stands for the admin port.
    ///   - admin: further lines of `admin`; `OUTSIDE` stands for nginx's address.
    init(_ locations: String, admin: String, client: String = "") async throws {
        web = try PlayedWeb()
        let port = try freePort()
        nginx = try await Nginx(locations: locations.replacing("ADMIN", with: "127.0.0.1:\(port)"))
        outside = "http://localhost:\(nginx.httpPort)"
        let lines = "listen: 127.0.0.1:\(port)\ntoken: {file: FOLDER/admin-token}\n\(admin)"
        proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: "\(web.url)/token", client: "\(web.client)\n\(client)",
                admin: lines.replacing("OUTSIDE", with: outside),
                upstreams: ProxyConfiguration.upstream(url: web.url), files: ["admin-token": Self.token]))
    }

    static let entering = ["see:requires its token", "type:token=\(token)", "click:Go on"]

    /// Signs in by the button, and out.
    func uses(_ page: String) async throws {
        let seen = try await BrowserSteps()(
            web.link(to: "\(page)/login/api") + Self.entering
                + ["at:\(web.url)/authorize", "click:Allow", "see:Signed in", "at:\(page)/callback?done="]
                + ["click:To the overview", "see:Ready", "at:\(page)/", "click:Sign out", "see:Sign-in needed"]
                + ["click:Sign in", "at:\(web.url)/authorize", "click:Allow", "see:Signed in"])
        #expect(seen == [])
        let query = try #require(web.origin.requests.first { $0.target.hasPrefix("/authorize") }?.target)
        let sent = URLComponents(string: query)?.queryItems?.first { $0.name == "redirect_uri" }?.value
        #expect(sent == "\(page)/callback")
    }
}

/// nginx before the admin port, and `Fixtures/browse.py` in a real Chromium.
@Suite("the page behind a server that hides its address", .timeLimit(.minutes(5)))
struct FrontTests {
    @Test(arguments: [
        // nginx as its manual shows it: the path is stripped, and Host is the admin port's.
        ("/proxy", "location /proxy/ { proxy_pass http://ADMIN/; }"),
        ("/proxy", "location /proxy/ { proxy_pass http://ADMIN; proxy_set_header Host $http_host; }"),
        ("", "location / { proxy_pass http://ADMIN; }"),
        ("/a/b", "location /a/b/ { proxy_pass http://ADMIN/; proxy_set_header Host $http_host; }"),
    ])
    func `with admin.url, everything leads through the front, whether it strips the path or writes another Host`(
        path: String, location: String
    ) async throws {
        let front = try await FrontedProxy(location, admin: "url: OUTSIDE\(path)/")
        let page = front.outside + path
        let refused = try await front.proxy.get("http://api.test/")
        #expect(refused.text.contains("\"login_url\":\"\(page)/login/api\""), "\(refused.text)")
        try await front.uses(page)
        // Whoever opens the listener itself is led to the front.
        let admin = try await front.proxy.administration().address
        let seen = try await BrowserSteps()(
            ["open:\(page)/"] + FrontedProxy.entering + ["see:Clients", "open:http://\(admin)/login/api"]
                + FrontedProxy.entering
                + ["at:\(front.web.url)/authorize", "click:Allow", "see:Signed in", "at:\(page)/callback"])
        #expect(seen == [])
    }

    @Test func `without admin.url, a front that writes another Host is refused with the line to write`() async throws {
        let front = try await FrontedProxy("location / { proxy_pass http://ADMIN; }", admin: "")
        let line = "url: \(front.outside)"
        let seen = try await BrowserSteps()(
            [
                "open:\(front.outside)/", "see:requires its token", "type:token=\(FrontedProxy.token)", "click:Go on",
                "see:\(line)",
            ])
        #expect(seen == [])
    }

    @Test func `without admin.url and admin.token, the sign-in is refused with the line to write`() async throws {
        let web = try PlayedWeb()
        let port = try freePort()
        let nginx = try await Nginx(locations: "location / { proxy_pass http://127.0.0.1:\(port); }")
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: "\(web.url)/token", client: web.client, admin: "listen: 127.0.0.1:\(port)",
                upstreams: ProxyConfiguration.upstream(url: web.url)))
        _ = try await proxy.administration()
        let outside = "http://localhost:\(nginx.httpPort)"
        let seen = try await BrowserSteps()(
            ["open:\(outside)/", "see:Clients", "click:Sign in", "see:hides its address", "see:url: \(outside)"])
        #expect(seen == [])
    }

    @Test func `without admin.url, a page whose path is stripped says why it has no style`() async throws {
        let front = try await FrontedProxy("location /proxy/ { proxy_pass http://ADMIN/; }", admin: "")
        let seen = try await BrowserSteps()(["open:\(front.outside)/proxy/", "see:The style of this page is missing"])
        #expect(seen.allSatisfy { !$0.contains("Content Security Policy") })
    }
}
