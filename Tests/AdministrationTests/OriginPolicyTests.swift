import HTTPMessage
import Reactor
import TestSupport
import Testing

@testable import Administration

@Suite("who may read the status", .timeLimit(.minutes(2)))
struct OriginPolicyTests {
    private func check(
        _ host: String..., origin: [String] = [], site: [String] = [], own: String = "127.0.0.1"
    ) throws -> OriginPolicy.Refusal? {
        let address = try #require(SocketAddress(numericHost: own, port: 8081))
        do throws(OriginPolicy.Refusal) {
            try OriginPolicy(hosts: [.name("box.internal")]).check(
                hosts: host, origins: origin, sites: site, own: address)
            return nil
        } catch { return error }
    }

    @Test(arguments: [
        "localhost", "LOCALHOST:8081", "127.0.0.1", "127.0.0.1:8081", "127.1.2.3:1", "[::1]", "[::1]:8081",
        "box.internal", "BOX.internal:443", "10.0.0.7:8081",
    ])
    func `a request with one of the admin port's own names is answered`(host: String) throws {
        #expect(try check(host, own: "10.0.0.7") == nil)
    }

    @Test(arguments: [
        "evil.example", "evil.example:8081", "localhost.evil.example", "127.0.0.1.evil.example",
        "box.internal.evil.example",
        "10.0.0.8", "10.0.0.8:8081", "0.0.0.0", "[::]:8081", "[fe80::1]", "", ":8081", "localhost:", "localhost:x",
        "localhost:8081:8081", "user@localhost", "localhost/", "localhost#", "127.0.0.1,evil.example", "[::1", "[::1]x",
        "2130706433", "0x7f000001", "127.1", "localhost.", " localhost", "lOcalho\u{17F}t",
    ])
    func `a request with a foreign name is refused`(host: String) throws {
        #expect(try check(host, own: "10.0.0.7") == .foreignHost)
    }

    @Test func `a listener for both families knows its IPv4 address`() throws {
        #expect(try check("10.0.0.7:8081", own: "::ffff:10.0.0.7") == nil)
        #expect(try check("10.0.0.8:8081", own: "::ffff:10.0.0.7") == .foreignHost)
    }

    @Test func `a request without a Host, or with two, is refused`() throws {
        #expect(try check() == .noHost)
        #expect(try check("localhost", "localhost") == .noHost)
    }

    @Test func `a page of its own origin may read; any other may not`() throws {
        let host = "localhost:8081"
        for origin in ["http://localhost:8081", "https://localhost:8081", "http://LOCALHOST:8081"] {
            #expect(try check(host, origin: [origin]) == nil)
        }
        for origin in [
            "http://localhost", "http://localhost:3000", "http://127.0.0.1:8081", "http://evil.example", "null", "",
            "http://localhost:8081.evil.example", "http://evil.example/http://localhost:8081", "localhost:8081",
            "file://", "http://localhost:8081/",
        ] {
            #expect(try check(host, origin: [origin]) == .foreignPage, "\(origin)")
        }
        #expect(try check(host, origin: ["http://localhost:8081", "http://evil.example"]) == .foreignPage)
    }

    @Test func `only Sec-Fetch-Site of this site or the address bar is allowed`() throws {
        for site in ["same-origin", "none"] { #expect(try check("localhost", site: [site]) == nil) }
        for site in ["same-site", "cross-site", "", "Same-Origin", "none, cross-site"] {
            #expect(try check("localhost", site: [site]) == .foreignPage)
        }
        #expect(try check("localhost", site: ["none", "cross-site"]) == .foreignPage)
    }

    // MARK: Over the wire

    @Test func `a rebound name, a foreign page and a forged Host get nothing`() async throws {
        let admin = try await AdministeredProxy()
        for path in ["/status", "/status?format=text", "/events", "//status", "/status/"] {
            for (host, fields): (String?, [(String, String)]) in [
                ("evil.example:\(admin.adminPort)", []), (nil, []), ("evil.example", [("Host", "localhost")]),
                ("localhost", [("Host", "evil.example")]), ("localhost", [("Origin", "http://evil.example")]),
                ("localhost", [("Origin", "null")]), ("localhost", [("Sec-Fetch-Site", "cross-site")]),
                ("localhost:\(admin.adminPort)", [("Sec-Fetch-Site", "same-site")]),
            ] {
                let answer = try await admin.get(path, fields, host: host)
                #expect(answer.status == 403 || answer.status == 400, "\(path) \(host ?? "") \(fields)")
                #expect(!answer.text.contains("api"))
                #expect(answer.field("Access-Control-Allow-Origin") == nil)
                #expect(answer.field("X-Frame-Options") == "DENY" || answer.status == 400)
            }
        }
        // The target's own host counts for nothing but its path.
        #expect(try await admin.get("http://evil.example/status", host: "evil.example").status == 403)
        let preflight = try await admin.send(
            "OPTIONS", "/status", [("Origin", "http://evil.example"), ("Access-Control-Request-Method", "GET")])
        #expect(preflight.status == 404)
        #expect(preflight.field("Access-Control-Allow-Origin") == nil)
        #expect(try await admin.get("/status").status == 200)
    }

    @Test func `admin.token is wanted where it is set`() async throws {
        let admin = try await AdministeredProxy(admin: "token: {file: FOLDER/admin-token}")
        for value in [
            nil, "Bearer", "Bearer ", "Bearer wrong", "Basic \(adminToken)", adminToken, "Bearer \(adminToken)x",
        ] {
            let answer = try await admin.get("/status", value.map { [("Authorization", $0)] } ?? [])
            #expect(answer.status == 401, "\(value ?? "none")")
            #expect(answer.field("WWW-Authenticate") == "Bearer realm=\"heimdallr-proxy\"")
            #expect(!answer.text.contains("api"))
        }
        let right = ("Authorization", "Bearer \(adminToken)")
        #expect(try await admin.get("/status", [right]).status == 200)
        #expect(try await admin.get("/status", [("authorization", "bearer \(adminToken)")]).status == 200)
        #expect(try await admin.get("/status", [right, right]).status == 401)
        #expect(try await admin.get("/status", [right], host: "evil.example").status == 403)
        // Rotated without a restart.
        try admin.proxy.directory.write("another-long-enough-token", to: "admin-token")
        #expect(try await admin.get("/status", [right]).status == 401)
        #expect(try await admin.get("/status", [("Authorization", "Bearer another-long-enough-token")]).status == 200)
        // An empty file lets no caller in.
        try admin.proxy.directory.write("", to: "admin-token")
        #expect(try await admin.get("/status", [("Authorization", "Bearer ")]).status == 500)
        // The socket's mode guards it.
        #expect(try await admin.run("status").ending == .exited(0))
    }

    @Test func `admin.token can't be tried many times, by the form or in a field, and the log says so`() async throws {
        let admin = try await AdministeredProxy(admin: "token: {file: FOLDER/admin-token}")
        var statuses: [Int] = []
        for number in 0..<30 {
            statuses.append(try await admin.get("/status", [("Authorization", "Bearer guess-\(number)")]).status)
        }
        #expect(statuses == Array(repeating: 401, count: 10) + Array(repeating: 429, count: 20))
        // The right one is not looked at either, or guessing would go on.
        let right = ("Authorization", "Bearer \(adminToken)")
        let late = try await admin.get("/status", [right])
        #expect(late.status == 429 && late.field("Retry-After") == "60")
        for path in ["/events", "/", "/login/api"] { #expect(try await admin.get(path, [right]).status == 429) }
        var browser = Browser(admin)
        let form = try await browser.get("/").text
        let token = try #require(form.firstMatch(of: /name="csrf" value="([^"]+)"/)?.1)
        #expect(
            try await browser.send("POST", "/enter", body: "csrf=\(token)&next=/&token=\(adminToken)").status == 429)
        // Probes want no token, and the socket is another way.
        #expect(try await admin.get("/livez", [right]).status == 200)
        #expect(try await admin.run("status").output.contains("Client api"))
        let lines = admin.proxy.log.split(separator: "\n").filter { $0.contains("admin.token") }
        #expect(lines.count >= 1 && lines.count <= 4, "\(lines)")
        #expect(lines.first?.contains("a wrong admin.token was given") == true)
        #expect(lines.first?.contains("peer=127.0.0.1") == true)
        #expect(!admin.proxy.log.contains("guess-"))
    }

    @Test(arguments: ["token: {file: FOLDER/short}", "token: {env: SHORT_ADMIN_TOKEN}", "token: fifteen-octets."])
    func `a short admin.token is an error at start, and for check`(token: String) async throws {
        let directory = try TemporaryDirectory()
        try directory.write("fifteen-octets.\r\n", to: "short")
        let file = try directory.write(
            """
            proxy: {listen: "127.0.0.1:0"}
            admin:
              listen: 127.0.0.1:0
              socket: FOLDER/admin.sock
              \(token)
            """.replacing("FOLDER", with: directory.path), to: "config.yaml")
        for verb in ["serve", "check"] {
            let run = try await RunningProxy.run(
                [verb, "--config", file], environment: ["SHORT_ADMIN_TOKEN": "fifteen-octets."])
            #expect(run.ending == .exited(78), "\(run.transcript)")
            #expect(run.errors.contains("admin.token: it has 15 octets, so it can be guessed: use at least 16"))
            #expect(!run.transcript.contains("fifteen"))
        }
    }

    @Test func `requests meant for the command line are refused at the port`() async throws {
        let admin = try await AdministeredProxy()
        for path in ["/token/api", "/why?method=GET&url=http://api.test/", "/login/api/x/y", "/logout"] {
            for method in ["GET", "POST"] { #expect(try await admin.send(method, path).status == 404) }
        }
        #expect(admin.tokenEndpoint.requests.count <= 1)
    }
}
