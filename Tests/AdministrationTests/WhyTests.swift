import Foundation
import TestSupport
import Testing

@testable import Administration

@Suite("why says what the proxy then does", .timeLimit(.minutes(2)))
struct WhyTests {
    /// `why` and the request itself.
    private func both(_ admin: AdministeredProxy, _ method: String, _ url: String) async throws -> (
        why: ChildProcess, answer: RawResponse
    ) {
        (try await admin.run("why", method, url), try await admin.proxy.send(method, url))
    }

    @Test func `why tells that somebody has to sign in, with the status, the reason and the address`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        let (why, answer) = try await both(admin, "GET", "http://api.test/")
        #expect(answer.status == 503 && why.ending == .exited(3))
        let login = "http://127.0.0.1:\(admin.adminPort)/login/api"
        #expect(answer.text.contains(login))
        #expect(why.output.contains("answer       503 A sign-in is needed\n"), "\(why.output)")
        #expect(why.output.contains("login_url    \(login)\n"), "\(why.output)")
        #expect(why.output.contains("what to do   sign in at \(login), or by heimdallr-proxy login api\n"))
        #expect(!why.output.contains("for want of"))
    }

    @Test(arguments: [
        (TokenEndpointAnswer.error("invalid_scope"), 502, "The authorization server refuses the client"),
        (.status(500), 503, "No valid token"),
    ])
    func `why tells the answer that a request without a token would get`(
        answer: TokenEndpointAnswer, status: Int, title: String
    ) async throws {
        let admin = try await AdministeredProxy(TokenEndpoint([answer]), upstream: "token_wait: 1s")
        try await admin.reaches("backing_off")
        let (why, answer) = try await both(admin, "GET", "http://api.test/")
        #expect(answer.status == status)
        #expect(answer.text.contains(title))
        #expect(why.output.contains("answer       \(status) \(title)\n"), "\(why.output)")
        #expect(why.ending == .exited(3))
    }

    @Test func `without a token there is no age of one, and each route says what https gets`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken, expiresIn: "1"), .status(500)]), upstream: "token_wait: 1s")
        try await eventually("the token has ended, and there is no other") {
            _ = try await admin.proxy.send("GET", "http://api.test/")
            return try await admin.state() == "backing_off"
        }
        let why = try await admin.run("why", "GET", "http://api.test/")
        #expect(why.output.contains("last error   ") && !why.output.contains("token from"), "\(why.output)")
        #expect(why.output.contains("https        refused: say http:// in the program"), "\(why.output)")
        let json = try await admin.run("why", "--json", "GET", "http://api.test/")
        #expect(json.output.contains(/"https": ?"refused"/), "\(json.output)")
    }

    @Test func `why and status show a device's grant by its short name`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]),
            client: "grant_type: device_code\ndevice_authorization_endpoint: http://127.0.0.1:1/device")
        try await admin.reaches("needs_authentication")
        for verb in [["status"], ["status", "--json"], ["why", "GET", "http://api.test/"]] {
            let output = try await RunningProxy.run(verb + ["--socket", admin.socket]).output
            #expect(output.contains("device_code"), "\(output)")
            #expect(!output.contains("urn:ietf"), "\(output)")
        }
    }

    @Test func `a base URL that a program asks for through its proxy is known`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]), upstream: "listen: 127.0.0.1:0\npaths: [/v1/]")
        try await admin.ready()
        let port = try await eventually("two listeners") {
            let ports = admin.proxy.log.matches(of: /info listening address=127\.0\.0\.1:(\d+)/).map { $0.1 }
            return ports.count == 2 ? String(ports[1]) : nil
        }
        for host in ["127.0.0.1", "localhost"] {
            let (why, answer) = try await both(admin, "GET", "http://\(host):\(port)/v1/x")
            #expect(answer.status == 200)
            #expect(why.ending == .exited(0), "\(why.transcript)")
            #expect(
                why.output.contains("rule         upstreams[0] api.test paths /v1/ by its own listener\n"),
                "\(why.output)")
            #expect(why.output.contains("destination  \(admin.origin.url)\n"))
        }
        let (why, answer) = try await both(admin, "GET", "http://127.0.0.1:\(port)/other")
        #expect(answer.status == 403)
        #expect(why.output.contains("would answer 403"), "\(why.output)")
        #expect(try await admin.run("why", "GET", "http://127.0.0.1:1/").output.contains("would answer 403"))
    }

    @Test func `the rules that why tells are the proxy's own`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]),
            more: """
                  - {host: get.test, methods: [GET], url: "http://127.0.0.1:1"}
                  - {host: query.test, url: "http://127.0.0.1:1", client: api, allow_plaintext: true, inject: {query: access_token}, allow_deprecated: true}
                  - {host: plain.test, url: "http://127.0.0.1:1"}
                """)
        try await admin.ready()
        for (method, url) in [
            ("GET", "http://get.test/?_method=DELETE"), ("POST", "http://get.test/"), ("OPTIONS", "http://query.test"),
            ("GET", "http://nobody.test/"),
            ("GET", "http://api.test:99999/"),
        ] {
            let (why, answer) = try await both(admin, method, url)
            #expect((400..<500).contains(answer.status), "\(method) \(url) \(answer.status)")
            #expect(
                why.output.contains("The proxy itself would answer \(answer.status): "),
                "\(method) \(url): \(answer.status) \(why.output)")
            #expect(!why.output.contains("connection is closed"), "\(why.output)")
        }
        // No token goes onto TRACE.
        let trace = try await admin.run("why", "TRACE", "http://api.test/")
        #expect(trace.output.contains("client       none: TRACE carries no token\n"), "\(trace.output)")
    }

    @Test func `for an https URL programs send CONNECT, which is refused`() async throws {
        let admin = try await AdministeredProxy(TokenEndpoint([.token(accessToken)]))
        try await admin.ready()
        let why = try await admin.run("why", "GET", "https://api.test/v1?x=1#y")
        #expect(why.ending == .exited(3))
        #expect(
            why.output.contains(
                "The proxy itself would answer 403: For an https:// URL, programs send CONNECT api.test:443. "
                    + "Use http://api.test instead of https, or set intercept: true.\n"), "\(why.output)")
        let answer = try await RawClient.exchange(
            port: admin.proxy.port, "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n", method: "CONNECT")
        #expect(answer.status == 403)
        let malformed = try await admin.run("why", "GET", "https://user@api.test/")
        #expect(
            malformed.ending == .exited(3) && malformed.output.contains("would answer 400: "), "\(malformed.output)")
    }

    @Test func `why takes the fields by which a rule is chosen`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]), upstream: "fields: {X-Tenant: [a]}")
        try await admin.ready()
        let without = try await admin.run("why", "GET", "http://api.test/")
        #expect(without.ending == .exited(3) && without.output.contains("x-tenant: the request has none"))
        let with = try await admin.run("why", "GET", "http://api.test/", "--field", "X-Tenant=a")
        #expect(with.ending == .exited(0) && with.output.contains("rule         upstreams[0] "), "\(with.transcript)")
        #expect(try await admin.run("why", "GET", "http://api.test/", "--field", "X-Tenant").ending == .exited(2))
        let split = try await admin.run("why", "GET", "http://api.test/", "--field", "X=a\r\nX-Tenant: a")
        #expect(split.ending != .exited(0), "\(split.transcript)")
    }

    @Test func `for an https URL whose tunnel is listed, it says that nothing is put on`() async throws {
        let proxy = try await RunningProxy(
            """
            proxy: {listen: "127.0.0.1:0", connect: tunnel, tunnels: ["listed.test:443"]}
            admin: {listen: "127.0.0.1:0", socket: FOLDER/admin.sock}
            upstreams: [{host: a.test}]
            """)
        _ = try await proxy.administration()
        for (url, code) in [
            ("HTTPS://listed.test", Int32(0)), ("https://listed.test:8443/", 3), ("https://a.test/", 3),
        ] {
            let why = try await RunningProxy.run(
                ["why", "--socket", proxy.directory.path(of: "admin.sock"), "GET", url])
            #expect(why.ending == .exited(code), "\(why.transcript)")
            #expect(why.output.contains("listed.test:443, through a tunnel\n") == (code == 0), "\(why.output)")
        }
    }

    @Test func `a host that is nearly right is guessed`() async throws {
        let admin = try await AdministeredProxy(TokenEndpoint([.token(accessToken)]))
        try await admin.ready()
        for (url, asked) in [("http://api.tset/", "api.tset:80"), ("http://api.test:81/", "api.test:81")] {
            let (why, answer) = try await both(admin, "GET", url)
            let sentence = "names no upstream for \(asked); did you mean api.test?"
            #expect(answer.status == 403 && answer.text.contains(sentence), "\(answer.text)")
            #expect(why.output.contains(sentence) && why.ending == .exited(3), "\(why.output)")
        }
        let secure = try await admin.run("why", "--json", "GET", "https://api.tset/")
        #expect(
            secure.output.contains("No upstream for api.tset:443: did you mean http://api.test?"), "\(secure.output)")
        #expect(secure.output.contains(#""type": "connect-refused""#), "\(secure.output)")
    }

    @Test func `why tells beforehand of loops and of addresses that are not allowed`() async throws {
        let admin = try await RunningProxy(
            """
            proxy: {listen: "127.0.0.1:0", unmatched: forward}
            admin: {listen: "127.0.0.1:0", socket: FOLDER/admin.sock}
            upstreams: [{host: a.test}]
            """)
        let adminPort = try await admin.administration().port
        for url in [
            "http://127.0.0.1:\(admin.port)/", "http://127.0.0.1:\(adminPort)/", "http://10.0.0.1/",
            "http://169.254.169.254/latest/",
        ] {
            let why = try await RunningProxy.run(
                ["why", "--socket", admin.directory.path(of: "admin.sock"), "GET", url])
            let status = try await admin.get(url).status
            #expect([403, 508].contains(status), "\(url) \(status)")
            #expect(why.output.contains("The proxy itself would answer \(status): "), "\(url) \(why.output)")
        }
    }

    @Test func `why says that a user is asked for`() async throws {
        let proxy = try await RunningProxy(
            """
            proxy: {listen: "127.0.0.1:0", users: {ada: {file: FOLDER/password}}}
            admin: {listen: "127.0.0.1:0", socket: FOLDER/admin.sock}
            upstreams: [{host: a.test}]
            """, files: ["password": "a long password"])
        _ = try await proxy.administration()
        let why = try await RunningProxy.run(
            ["why", "--socket", proxy.directory.path(of: "admin.sock"), "GET", "http://a.test/"])
        #expect(why.ending == .exited(0))
        #expect(
            why.output.contains("for          users of proxy.users (ada); all others get 407\n"), "\(why.output)")
    }
}
