import Foundation
import TestSupport
import Testing

@Suite("doctor says the real fault, and what to do", .timeLimit(.minutes(3)))
struct DoctorTests {
    private static let secret = "SECRET-SEKRET-0123456789"

    /// - Parameters:
    ///   - client: settings of the one client, but for its id and secret.
    ///   - upstream: settings of the one upstream, but for its host and client.
    private func doctor(
        client: String, upstream: String, top: String = "", hasSecret: Bool = true, _ arguments: String...
    ) async throws -> ChildProcess {
        let directory = try TemporaryDirectory()
        let secret = try directory.write(Self.secret, to: "secret")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret)
        let file = try directory.write(
            """
            \(top)
            clients:
              c: {client_id: id, \(hasSecret ? "client_secret: {file: \(secret)}, " : "")allow_plaintext: true, \(client)}
            upstreams:
              - {host: api.test, client: c, allow_plaintext: true, \(upstream)}
            """, to: "config.yaml")
        return try await RunningProxy.run(
            ["doctor", "--config", file] + arguments,
            environment: ["http_proxy": nil, "https_proxy": nil, "no_proxy": nil])
    }

    /// Faults of the upstream. Everything else works.
    private func upstreamFault(_ upstream: String) async throws -> ChildProcess {
        let endpoint = try TokenEndpoint([.token("TOKEN-SEKRET")])
        return try await doctor(client: "token_endpoint: \"\(endpoint.url)\"", upstream: upstream)
    }

    /// Faults of the token endpoint. Everything else works.
    private func clientFault(
        _ client: String, top: String = "admin: {}", secret: Bool = true
    ) async throws -> ChildProcess {
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        return try await doctor(client: client, upstream: "url: \"\(origin.url)\"", top: top, hasSecret: secret)
    }

    private func expect(
        _ run: ChildProcess, fails check: String, _ words: [String], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(run.ending == .exited(1), "\(run.transcript)", sourceLocation: sourceLocation)
        let lines = run.output.components(separatedBy: "\n")
        let index = lines.firstIndex { $0.contains("FAIL  \(check)") }
        #expect(index != nil, "\(run.output)", sourceLocation: sourceLocation)
        for word in words { #expect(run.output.contains(word), "\(run.output)", sourceLocation: sourceLocation) }
        if let index {
            #expect(lines[index + 1].contains("what to do: "), "\(run.output)", sourceLocation: sourceLocation)
        }
        #expect(!run.transcript.contains("SEKRET"), sourceLocation: sourceLocation)
    }

    @Test func `a good setup costs one token, shows no secret, ends with 0 and needs no running proxy`() async throws {
        let endpoint = try TokenEndpoint([.token("TOKEN-SEKRET", extra: "\"scope\":\"read\"")])
        let nginx = try await Nginx.secure()
        let client = "token_endpoint: \"\(endpoint.url)\", scope: [read]"
        let upstream =
            "url: \"https://localhost:\(nginx.httpsPort)\", tls: {ca_file: \(nginx.authority.certificateFile)}"
        let run = try await doctor(client: client, upstream: upstream)
        #expect(run.ending == .exited(0), "\(run.transcript)")
        for words in [
            "ok    token        received: Bearer, valid for 35", "scope read", "ok    TLS          TLSv1.",
            ", CN=server", "issued by CN=heimdallr-proxy test CA", "accepts connections", "ok    clock        agrees",
            "answers 200 to HEAD /, without a token", "can be read, mode 600", "Nothing is wrong.",
        ] { #expect(run.output.contains(words), "\(words): \(run.output)") }
        #expect(!run.transcript.contains("SEKRET"))
        #expect(endpoint.requests.count == 1)
        #expect(try nginx.accessLog().contains("HEAD / HTTP/1.1 200 -"))
        let json = try await doctor(client: client, upstream: upstream, "--json", "--no-token")
        let object = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
        #expect(object?["ok"] as? Bool == true, "\(json.transcript)")
        #expect(
            (object?["subjects"] as? [[String: Any]])?.map { $0["kind"] as? String ?? "" }
                == ["configuration", "client", "upstream"])
        #expect(endpoint.requests.filter { $0.method == "POST" }.count == 1, "no second token")
    }

    @Test func `doctor names an unknown host, a refused port and a silent host`() async throws {
        let unknown = try await upstreamFault("url: \"https://does-not-exist.invalid\"")
        expect(unknown, fails: "name", ["resolve host does-not-exist.invalid", "check the upstream's host or url"])
        let refused = try await upstreamFault("url: \"https://127.0.0.1:\(try freePort())\"")
        expect(refused, fails: "TCP", ["connection refused", "check that the upstream is running"])
        let deaf = try DeafPort()
        let begin = ContinuousClock.now
        let silent = try await upstreamFault("url: \"https://127.0.0.1:\(deaf.port)\"")
        expect(silent, fails: "TCP", ["no connection in time", "check the network to the upstream"])
        #expect(begin.duration(to: .now) < .seconds(15))
    }

    @Test func `doctor names a server that takes connections and says nothing`() async throws {
        let endpoint = try TokenEndpoint([.silence])
        let slow = try await clientFault("token_endpoint: \"\(endpoint.url)\", timeout: 1s")
        expect(slow, fails: "token", ["no complete answer came in time"])
        let mute = try RawListener()
        let silent = try await upstreamFault("url: \"https://127.0.0.1:\(mute.port)\"")
        expect(silent, fails: "TLS", ["accepts connections and then sends nothing"])
    }

    @Test func `doctor names certificates that are expired, self-signed, of an unknown authority, or for another name`()
        async throws
    {
        let authority = try await PrivateCA()
        let expired = try await Nginx(certificate: try await authority.server(days: -1))
        let old = try await upstreamFault(
            "url: \"https://localhost:\(expired.httpsPort)\", tls: {ca_file: \(authority.certificateFile)}")
        expect(old, fails: "TLS", ["the server's certificate has expired on ", "renew it there"])
        let own = try await Nginx(certificate: try await authority.selfSigned())
        let selfSigned = try await upstreamFault("url: \"https://localhost:\(own.httpsPort)\"")
        expect(selfSigned, fails: "TLS", ["it is self-signed", "tls.ca_file"])
        let strange = try await Nginx(certificate: try await authority.server())
        let unknown = try await upstreamFault("url: \"https://localhost:\(strange.httpsPort)\"")
        expect(
            unknown, fails: "TLS",
            ["no authority that is trusted here has signed", "issued by CN=heimdallr-proxy test CA", "tls.ca_file"])
        let other = try await Nginx(certificate: try await authority.server(["DNS:other.example"]))
        let name = try await upstreamFault(
            "url: \"https://localhost:\(other.httpsPort)\", tls: {ca_file: \(authority.certificateFile)}")
        expect(name, fails: "TLS", ["for another name than localhost; it is for DNS:other.example", "server_name"])
    }

    @Test func `doctor names plain http on a TLS port, and the other way round`() async throws {
        let nginx = try await Nginx.secure()
        let plain = try await upstreamFault("url: \"http://127.0.0.1:\(nginx.httpsPort)\"")
        expect(plain, fails: "HTTP", ["the port speaks TLS, and the address says http://", "write https://"])
        let secure = try await upstreamFault("url: \"https://127.0.0.1:\(nginx.httpPort)\"")
        expect(secure, fails: "TLS", ["the port speaks no TLS", "http:// with allow_plaintext: true"])
        let token = try await clientFault("token_endpoint: \"http://127.0.0.1:\(nginx.httpsPort)/token\"")
        expect(token, fails: "HTTP", ["the port speaks TLS, and the address says http://", "-     token"])
    }

    @Test func `doctor names a server that wants a client certificate`() async throws {
        let nginx = try await Nginx.secure(asksClients: true)
        let run = try await upstreamFault(
            "url: \"https://localhost:\(nginx.httpsPort)\", tls: {ca_file: \(nginx.authority.certificateFile)}")
        #expect(run.output.contains("requests a client certificate"), "\(run.output)")
    }

    @Test func `doctor names a wrong secret, HTML instead of JSON, and a 404`() async throws {
        let wrong = try TokenEndpoint([
            .error("invalid_client", status: 401, description: "no such \(Self.secret) \\u001b[31m")
        ])
        let refused = try await clientFault("token_endpoint: \"\(wrong.url)\"")
        expect(refused, fails: "token", ["invalid_client", "check client_id, client_secret"])
        #expect(!refused.transcript.contains("\u{1B}"), "what a server says is printable")
        let page = try TokenEndpoint([.html(200)])
        let html = try await clientFault("token_endpoint: \"\(page.url)\"")
        expect(
            html, fails: "token", ["a web page (HTML or XML), not JSON", "Content-Type text/html", "check the address"])
        let lost = try TokenEndpoint([.status(404)])
        let nowhere = try await clientFault("token_endpoint: \"\(lost.url)\"")
        expect(nowhere, fails: "token", ["it answered 404", "check the address, \(lost.url)"])
    }

    @Test func `doctor does not show fields of an answer that hold a secret`() async throws {
        for type in [Self.secret, "text/\(Self.secret)", "text/x; a=\(Self.secret)", "SECRET%2DSEKRET/x"] {
            let endpoint = try TokenEndpoint([.init(fields: [("Content-Type", type)], body: "<html>")])
            let run = try await clientFault("token_endpoint: \"\(endpoint.url)\"")
            expect(run, fails: "token", ["(status 200"])
            #expect(!run.output.contains("Content-Type"), "\(run.output)")
        }
        let endpoint = try TokenEndpoint([
            .json("{\"access_token\":\"TOKEN-SEKRET\",\"token_type\":\"Bearer\"}", fields: [("Date", Self.secret)])
        ])
        let run = try await clientFault("token_endpoint: \"\(endpoint.url)\"")
        #expect(run.output.contains("the server's Date field is no date"), "\(run.output)")
        #expect(!run.transcript.contains("SEKRET"))
    }

    @Test func `doctor names a clock that is an hour off`() async throws {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        func answer(_ seconds: Double) -> TokenEndpointAnswer {
            .json(
                "{\"access_token\":\"TOKEN-SEKRET\",\"token_type\":\"Bearer\",\"expires_in\":300}",
                fields: [("Date", format.string(from: Date(timeIntervalSinceNow: seconds)))])
        }
        let hour = try TokenEndpoint([answer(3610)])
        let run = try await clientFault("token_endpoint: \"\(hour.url)\"")
        expect(run, fails: "clock", ["this machine's clock is 60 min behind the server's", "NTP"])
        let minute = try TokenEndpoint([answer(-60)])
        let late = try await clientFault("token_endpoint: \"\(minute.url)\"")
        #expect(late.ending == .exited(0), "\(late.transcript)")
        #expect(late.output.contains("WARN  clock"), "\(late.output)")
    }

    @Test func `doctor compares the metadata: another issuer, unlisted settings, and a good one`() async throws {
        let endpoint = try TokenEndpoint([.token("TOKEN-SEKRET"), .error("unauthorized_client")])
        func server(_ issuer: String?, _ more: String = "") throws -> RecordingOrigin {
            try RecordingOrigin { exchange in
                let host = exchange.head.field("Host") ?? ""
                try exchange.respond(
                    fields: [("Content-Type", "application/json")],
                    body: """
                        {"issuer": "\(issuer ?? "http://\(host)")", "token_endpoint": "\(endpoint.url)"\(more)}
                        """)
            }
        }
        let foreign = try server("https://other.example")
        let other = try await clientFault("issuer: \"\(foreign.url)\"")
        expect(other, fails: "metadata", ["belongs to another issuer, https://other.example", "write issuer: https"])
        let strange = try server(
            nil, ", \"grant_types_supported\": [\"password\"], \"token_endpoint_auth_methods_supported\": [\"none\"]")
        // A token shows that the steps not listed work.
        let works = try await clientFault("issuer: \"\(strange.url)\"")
        #expect(works.ending == .exited(0) && !works.output.contains("does not list"), "\(works.transcript)")
        let listed = try await clientFault("issuer: \"\(strange.url)\"")
        expect(listed, fails: "token", ["unauthorized_client"])
        #expect(listed.output.contains("does not list the grant client_credentials; it lists password"))
        #expect(listed.output.contains("does not list the authentication method client_secret_basic"))
        let plain = try server(nil)
        let good = try await clientFault("issuer: \"\(plain.url)\", grant_type: refresh_token, refresh_token: R")
        #expect(good.ending == .exited(0), "\(good.transcript)")
    }

    /// Serves metadata about itself under its own address.
    private func server(_ members: @escaping @Sendable (_ own: String) -> String) throws -> RecordingOrigin {
        try RecordingOrigin { exchange in
            let own = "http://\(exchange.head.field("Host") ?? "")"
            guard exchange.head.target.contains("/.well-known/") else { return try exchange.respond(404) }
            try exchange.respond(
                fields: [("Content-Type", "application/json")], body: "{\"issuer\": \"\(own)\", \(members(own))}")
        }
    }

    @Test func `doctor names a grant's endpoint that neither configuration nor metadata has`() async throws {
        let server = try server { "\"token_endpoint\": \"\($0)/token\"" }
        let device = try await clientFault("issuer: \"\(server.url)\", grant_type: device_code")
        expect(device, fails: "endpoint", ["device_authorization_endpoint is not known"])
        let browser = try await clientFault("issuer: \"\(server.url)\", grant_type: authorization_code")
        expect(browser, fails: "endpoint", ["authorization_endpoint is not known"])
    }

    @Test func `doctor names a key whose endpoint has no address`() async throws {
        let pushed = "pushed_authorization_request_endpoint"
        let server = try server {
            "\"token_endpoint\": \"\($0)/token\", \"authorization_endpoint\": \"\($0)/authorize\""
        }
        func run(_ issuer: String, _ more: String) async throws -> ChildProcess {
            try await clientFault("issuer: \"\(issuer)\", grant_type: authorization_code, \(more)")
        }
        expect(try await run(server.url, "par: required"), fails: "endpoint", ["the \(pushed) is not known"])
        let named = try await run(server.url, "par: required, \(pushed): \"\(server.url)/par\"")
        #expect(named.ending == .exited(0), "\(named.transcript)")
        let openid = try await run(server.url, "scope: [openid]")
        expect(openid, fails: "endpoint", ["has no jwks_uri", "leave openid out of scope"])
        // `par: auto` is the default.
        let strict = try self.server {
            "\"token_endpoint\": \"\($0)/token\", \"authorization_endpoint\": \"\($0)/authorize\", "
                + "\"jwks_uri\": \"\($0)/keys\", \"require_pushed_authorization_requests\": true"
        }
        let required = try await run(strict.url, "scope: [openid]")
        expect(required, fails: "endpoint", ["the \(pushed) is not known"])
        let off = try await run(strict.url, "scope: [openid], par: off")
        #expect(off.ending == .exited(0), "\(off.transcript)")
    }

    @Test func `doctor does not warn of a public client or a token endpoint's 404 to HEAD`() async throws {
        let server = try server {
            "\"token_endpoint\": \"\($0)/token\", \"device_authorization_endpoint\": \"\($0)/device\", "
                + "\"token_endpoint_auth_methods_supported\": [\"client_secret_basic\"]"
        }
        let run = try await clientFault("issuer: \"\(server.url)\", grant_type: device_code", secret: false)
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(!run.output.contains("WARN"), "\(run.output)")
        #expect(server.requests.contains { $0.method == "HEAD" && $0.target == "/token" })
    }

    @Test func `doctor tells seven addresses of one fault in one line`() async throws {
        let names = [
            "token_endpoint", "authorization_endpoint", "device_authorization_endpoint", "revocation_endpoint",
            "pushed_authorization_request_endpoint", "userinfo_endpoint", "jwks_uri",
        ]
        let server = try server { own in names.map { "\"\($0)\": \"\(own)/\($0)\"" }.joined(separator: ", ") }
        let run = try await clientFault("issuer: \"\(server.url)\", grant_type: device_code")
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(run.output.components(separatedBy: "no https:// address: ").count == 2, "\(run.output)")
        #expect(run.output.contains(names.joined(separator: ", ")), "\(run.output)")
    }

    @Test func `doctor tells a TLS fault once, and whose ca_file mends it`() async throws {
        let nginx = try await Nginx(certificate: try await PrivateCA().server())
        let url = "https://localhost:\(nginx.httpsPort)"
        let issuer = try await clientFault("issuer: \"\(url)\"")
        expect(issuer, fails: "TLS", ["tls.ca_file of the client", "-     metadata", "-     token"])
        #expect(issuer.output.components(separatedBy: "FAIL").count == 2, "\(issuer.output)")
        #expect(issuer.output.components(separatedBy: "no authority").count == 2, "\(issuer.output)")
        let endpoint = try await clientFault("token_endpoint: \"\(url)/token\"")
        expect(endpoint, fails: "TLS", ["tls.ca_file of the client", "-     token"])
        #expect(endpoint.output.components(separatedBy: "FAIL").count == 2, "\(endpoint.output)")
        let upstream = try await upstreamFault("url: \"\(url)\"")
        expect(upstream, fails: "TLS", ["tls.ca_file of the upstream"])
    }

    @Test func `doctor tells one fault once, for a client and for upstreams`() async throws {
        let closed = "http://127.0.0.1:\(try freePort())"
        for client in ["issuer: \"\(closed)\"", "token_endpoint: \"\(closed)/token\""] {
            let run = try await clientFault(client)
            expect(run, fails: "TCP", ["-     token        skipped: see the failure above", "One thing is wrong."])
        }
        let page = try RecordingOrigin { try $0.respond(body: "<html>") }
        let run = try await clientFault("issuer: \"\(page.url)\"")
        expect(run, fails: "metadata", ["-     token", "One thing is wrong."])
        let others = (0..<7).map { "- {host: a\($0).test, url: \"\(closed)\"}" }
        let upstreams = try await upstreamFault(
            "url: \"\(closed)\"}\n  " + others.joined(separator: "\n  ") + "\n  # {")
        expect(upstreams, fails: "TCP", ["Upstream api.test, a0.test, a1.test", "One thing is wrong."])
    }

    @Test func `doctor names http to a TLS port wherever it stands`() async throws {
        let nginx = try await Nginx.secure()
        let plain = "http://127.0.0.1:\(nginx.httpsPort)"
        for client in [
            "issuer: \"\(plain)\"",
            "token_endpoint: \"\(plain)/token\", device_authorization_endpoint: \"\(plain)/device\", grant_type: device_code",
        ] {
            let run = try await clientFault(client)
            expect(run, fails: "HTTP", ["the port speaks TLS, and the address says http://", "write https://"])
        }
        let secure = try await clientFault("token_endpoint: \"https://127.0.0.1:\(nginx.httpPort)/token\"")
        expect(secure, fails: "TLS", ["the port speaks no TLS", "write the port that does"])
    }

    @Test func `doctor tells the status of an error that the server names`() async throws {
        let endpoint = try TokenEndpoint([.error("server_error", status: 500)])
        let run = try await clientFault("token_endpoint: \"\(endpoint.url)\"")
        expect(run, fails: "token", ["server_error", "(status 500)", "read the server's log"])
    }

    @Test func `doctor is content with django-oauth-toolkit, whose metadata names the endpoint`() async throws {
        let server = try await DjangoOAuthToolkit()
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let directory = try TemporaryDirectory()
        let secret = try directory.write(DjangoOAuthToolkit.machine.secret, to: "secret")
        let file = try directory.write(
            """
            clients:
              machine: {issuer: "\(server.issuer)", client_id: \(DjangoOAuthToolkit.machine.id), client_secret: {file: \(secret)}, scope: [read], allow_plaintext: true}
            upstreams: [{host: a.test, url: "\(origin.url)", allow_plaintext: true, client: machine}]
            """, to: "config.yaml")
        let run = try await RunningProxy.run(["doctor", "--config", file])
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(run.output.contains("ok    token        received: Bearer"), "\(run.output)")
    }

    @Test func `doctor does not use what can be used only once`() async throws {
        let endpoint = try TokenEndpoint([.token("TOKEN-SEKRET")])
        let run = try await clientFault(
            "token_endpoint: \"\(endpoint.url)\", grant_type: refresh_token, refresh_token: REFRESH-SEKRET")
        #expect(
            run.output.contains("-     token        not requested: that would spend the refresh token"), "\(run.output)"
        )
        #expect(!endpoint.requests.contains { $0.method == "POST" })
        #expect(!run.transcript.contains("SEKRET"))
    }

    @Test func `doctor finds an upstream whose name leads to one of the proxy's own listeners`() async throws {
        let port = try freePort()
        let endpoint = try TokenEndpoint([.token("TOKEN-SEKRET")])
        // A name that only the resolver knows to be this machine's: the configuration sees nothing wrong with it.
        let name = try String(contentsOfFile: "/proc/sys/kernel/hostname", encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        let run = try await doctor(
            client: "token_endpoint: \"\(endpoint.url)\"", upstream: "url: \"http://\(name):\(port)\"",
            top: "proxy: {listen: \"0.0.0.0:\(port)\", open: true}")
        expect(run, fails: "address", ["the address is this proxy's own"])
    }

    @Test func `doctor names a next proxy that does not answer, or refuses`() async throws {
        let port = try freePort()
        let gone = try await upstreamFault("url: \"https://api.example\", proxy: \"http://u:SEKRET@127.0.0.1:\(port)\"")
        expect(gone, fails: "TCP", ["127.0.0.1:\(port): connection refused"])
        let refusing = try RecordingOrigin { try $0.respond(403) }
        let closed = try await upstreamFault("url: \"https://api.example\", proxy: \"\(refusing.url)\"")
        expect(closed, fails: "next proxy", ["the next proxy does not connect to api.example:443"])
    }

    @Test func `doctor looks only at given names; an unknown one is wrong usage, a bad file is 78`() async throws {
        let endpoint = try TokenEndpoint([.token("TOKEN-SEKRET")])
        let client = "token_endpoint: \"\(endpoint.url)\""
        let one = try await doctor(client: client, upstream: "url: \"http://127.0.0.1:1\"", "c")
        #expect(one.ending == .exited(0), "\(one.transcript)")
        #expect(one.output.contains("Client c") && !one.output.contains("Upstream"))
        let typo = try await doctor(client: client, upstream: "url: \"http://127.0.0.1:1\"", "api.tset")
        #expect(typo.ending == .exited(2))
        #expect(typo.errors.contains("did you mean \"api.test\"?"), "\(typo.errors)")
        let bad = try await doctor(client: "token_endpoint: nonsense", upstream: "url: \"http://127.0.0.1:1\"")
        #expect(bad.ending == .exited(78))
    }
}
