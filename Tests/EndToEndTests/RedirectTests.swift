import TestSupport
import Testing

/// Programs that follow redirects, keep cookies and move files, against an API that knows only its own address.
@Suite("redirects come home in real programs", .timeLimit(.minutes(3)))
struct RedirectTests {
    struct Client: Sendable, CustomTestStringConvertible {
        var name: String
        var command: @Sendable (_ base: String) throws -> [String]
        var testDescription: String { name }
    }

    static let readers = [
        Client(name: "curl") { ["curl", "-sSL", "-b", "", "\($0)/start"] },
        Client(name: "requests") { [try Repository.python(), fixture("redirected.py"), "requests", $0] },
        Client(name: "lynx") { ["lynx", "-dump", "-accept_all_cookies", "\($0)/start"] },
    ]

    static let movers = [
        Client(name: "webdavclient3") { [try Repository.python(), fixture("redirected.py"), "webdavclient3", $0] },
        Client(name: "cadaver") { base in
            ["sh", "-c", "printf 'move a.txt b.txt\\nquit\\n' | HOME=/nonexistent cadaver \"$0\" 2>&1", base + "/"]
        },
    ]

    private static let multistatus = """
        <?xml version="1.0"?><D:multistatus xmlns:D="DAV:"><D:response><D:href>PATH</D:href><D:propstat><D:prop>\
        <D:resourcetype>TYPE</D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\
        </D:multistatus>
        """

    /// Leads to itself by its own authority, and moves only what its own address names.
    private static func origin() throws -> RecordingOrigin {
        try RecordingOrigin { exchange in
            let own = "http://\(exchange.head.values("Host").first ?? "")"
            let target = exchange.head.target
            switch (exchange.head.method, target) {
            case (_, "/t/start"):
                try exchange.respond(
                    302,
                    fields: [("Location", "\(own)/t/landed"), ("Set-Cookie", "session=one; Secure; HttpOnly; Path=/t")])
            case (_, "/t/landed"):
                try exchange.respond(
                    fields: [("Content-Type", "text/plain")],
                    body: "landed with \(exchange.head.values("Cookie").joined())\n")
            case ("OPTIONS", _): try exchange.respond(fields: [("DAV", "1, 2"), ("Allow", "OPTIONS, MOVE, PROPFIND")])
            case ("PROPFIND", "/t/b.txt"), ("PROPFIND", "/t/b.txt/"), ("HEAD", "/t/b.txt"): try exchange.respond(404)
            case ("PROPFIND", _):
                let text = multistatus.replacing("PATH", with: target)
                    .replacing("TYPE", with: target.hasSuffix("/") ? "<D:collection/>" : "")
                try exchange.respond(207, fields: [("Content-Type", "application/xml")], body: text)
            case ("MOVE", "/t/a.txt"):
                let isOwn = exchange.head.values("Destination") == ["\(own)/t/b.txt"]
                try exchange.respond(isOwn ? 201 : 502)
            default: try exchange.respond(body: "")
            }
        }
    }

    private static func output(
        _ client: Client, asProxy: Bool, url path: String, below folder: String = ""
    ) async throws -> (output: String, origin: RecordingOrigin) {
        let origin = try origin()
        let proxy = try await RunningProxy(to: origin.url + path, upstream: "listen: 127.0.0.1:0", listeners: 2)
        let base = (asProxy ? "http://api.test" : "http://127.0.0.1:\(proxy.upstreamPort)") + folder
        var environment: [String: String?] = ["http_proxy": nil, "HTTP_PROXY": nil, "no_proxy": nil, "NO_PROXY": nil]
        if asProxy { environment["http_proxy"] = proxy.url }
        let output = try await ChildProcess.output(of: try client.command(base), environment: environment)
        return (output, origin)
    }

    @Test(arguments: readers, [true, false])
    func `a client follows a redirect, with its cookie`(client: Client, asProxy: Bool) async throws {
        let (output, origin) = try await Self.output(client, asProxy: asProxy, url: "/t")
        #expect(output.contains("landed with session=one"), "\(output)")
        #expect(origin.requests.map(\.target) == ["/t/start", "/t/landed"])
        #expect(origin.requests.allSatisfy { $0.values("Authorization") == ["Bearer \(token)"] })
    }

    /// Without a path in the `url`: cadaver compares the paths in a body with the paths it requested.
    @Test(arguments: movers)
    func `a client of WebDAV moves a file`(client: Client) async throws {
        let (output, origin) = try await Self.output(client, asProxy: false, url: "", below: "/t")
        let moves = origin.requests.filter { $0.method == "MOVE" }
        #expect(moves.map { $0.values("Destination") } == [["\(origin.url)/t/b.txt"]], "\(output)")
    }
}
