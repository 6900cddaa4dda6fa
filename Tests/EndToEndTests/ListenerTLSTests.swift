import Foundation
import TestSupport
import Testing

@Suite("a listener with TLS", .timeLimit(.minutes(3)))
struct ListenerTLSTests {
    private let authority: PrivateCA
    private let origin: RecordingOrigin

    init() async throws {
        authority = try await PrivateCA()
        origin = try RecordingOrigin { exchange in
            try exchange.respond(
                fields: [("Location", "http://api.test/base/next"), ("Set-Cookie", "a=b; Secure")], body: "ok")
        }
    }

    private static func listener(_ pair: PrivateCA.Certificate, clients: PrivateCA? = nil) -> String {
        let clientCA = clients.map { ", client_ca_file: \($0.certificateFile)" } ?? ""
        return "listen: {address: 127.0.0.1:0, tls: {cert_file: \(pair.certificateFile), "
            + "key_file: \(pair.keyFile)\(clientCA)}}"
    }

    private func curl(_ arguments: [String], trusts: PrivateCA? = nil) async throws -> ChildProcess {
        let file = (trusts ?? authority).certificateFile
        return try await ChildProcess.run(
            ["curl", "-sS", "--proxy-cacert", file, "--cacert", file] + arguments,
            environment: ["http_proxy": nil, "https_proxy": nil, "no_proxy": nil, "HOME": "/"])
    }

    private func secureProxy(
        _ proxy: String = "", clients: PrivateCA? = nil, upstream: String = "", more: String = ""
    ) async throws -> RunningProxy {
        let listener = Self.listener(try await authority.server(), clients: clients)
        return try await RunningProxy(to: origin, proxy: "\(listener)\n\(proxy)", upstream: upstream, more: more)
    }

    @Test func `a listener with TLS is an https proxy, and the token gets on`() async throws {
        let proxy = try await secureProxy()
        let run = try await curl([
            "--proxy", "https://localhost:\(proxy.port)", "http://api.test/a", "http://api.test/b",
        ])
        #expect(run.output == "okok", "\(run.transcript)")
        #expect(origin.requests.map(\.line) == ["GET /a HTTP/1.1", "GET /b HTTP/1.1"])
        #expect(origin.requests.allSatisfy { $0.values("Authorization") == ["Bearer \(token)"] })
        try await eventually("the client's address is in the access log") { proxy.log.contains("peer=127.0.0.1:") }
    }

    @Test func `a listener with TLS takes users' passwords, and opens TLS inside CONNECT`() async throws {
        let listener = Self.listener(try await authority.server())
        let proxy = try await RunningProxy(
            to: origin, proxy: "\(listener)\nusers: {alice: {file: FOLDER/alice}}", upstream: "intercept: true",
            files: ["alice": "a-password"], environment: ["XDG_RUNTIME_DIR": try TemporaryDirectory().path])
        let address = "https://alice:a-password@localhost:\(proxy.port)"
        let run = try await curl(["--proxy", address, "http://api.test/"])
        #expect(run.output == "ok", "\(run.transcript)")
        let inside = try await curl(["-k", "--proxy", address, "https://api.test/inside"])
        #expect(inside.output == "ok", "\(inside.transcript) \(proxy.log)")
        #expect(origin.requests.last?.values("Authorization") == ["Bearer \(token)"])
        let none = try await curl([
            "--proxy", "https://localhost:\(proxy.port)", "-w", "%{http_code}", "http://api.test/",
        ])
        #expect(none.output.hasSuffix("407"), "\(none.transcript)")
    }

    @Test func `a listener with TLS logs failed handshakes, and does not answer plain HTTP`() async throws {
        let proxy = try await secureProxy()
        let plain = try await RawClient.connect(port: proxy.port)
        try await plain.send("GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
        #expect(try await plain.readToEnd().isEmpty)
        try await eventually("the log") { proxy.log.contains("this listener has `tls`: write https://") }
        for _ in 0..<5 {
            _ = try await curl(["--proxy", "https://localhost:\(proxy.port)", "http://api.test/"], trusts: PrivateCA())
        }
        #expect(proxy.log.matches(of: /a program got no TLS from the proxy/).count == 1, "\(proxy.log)")
        #expect(try await curl(["--proxy", "https://localhost:\(proxy.port)", "http://api.test/"]).output == "ok")
        #expect(origin.requests.count == 1)
    }

    @Test func `a listener with TLS makes a base URL https, and answers name it so`() async throws {
        let listener = Self.listener(try await authority.server())
        let proxy = try await RunningProxy(to: origin, path: "/base", upstream: listener, admin: "", listeners: 2)
        let url = "https://localhost:\(proxy.upstreamPort)"
        let run = try await curl(["-i", "\(url)/x"])
        #expect(run.output.contains("Location: \(url)/next"), "\(run.output)")
        #expect(run.output.contains("a=b; Secure"), "\(run.output)")
        let python = """
            import ssl, sys, urllib.request
            context = ssl.create_default_context(cafile=sys.argv[1])
            print(urllib.request.urlopen(sys.argv[2] + "/python", context=context).read().decode())
            """
        let child = try await ChildProcess.run(
            ["/usr/bin/env", "python3", "-c", python, authority.certificateFile, url],
            environment: ["https_proxy": nil, "HTTPS_PROXY": nil])
        #expect(child.output == "ok\n", "\(child.transcript)")
        #expect(origin.requests.map(\.line) == ["GET /base/x HTTP/1.1", "GET /base/python HTTP/1.1"])
        let foreign = try await curl(["-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: evil.example", url])
        #expect(foreign.output == "403")
        let why = try await RunningProxy.run([
            "why", "--config", proxy.directory.path(of: "config.yaml"), "GET",
            "https://127.0.0.1:\(proxy.upstreamPort)/x",
        ])
        #expect(why.output.contains("by its own listener"), "\(why.transcript)")
    }

    @Test func `callers of a listener with TLS are told apart by their certificates`() async throws {
        let endpoint = try RecordingOrigin { exchange in
            let client = exchange.head.target.split(separator: "/").last ?? "?"
            try exchange.respond(
                fields: [("Content-Type", "application/json")],
                body: #"{"access_token":"token-of-\#(client)","token_type":"Bearer","expires_in":3600}"#)
        }
        let clients = ["reports", "imports"].map {
            "  \($0): {token_endpoint: \(endpoint.url)/\($0), client_id: \($0), allow_plaintext: true}"
        }
        let callers = [("reports", "CN=reports"), ("imports", "DNS:imports")]
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                proxy: Self.listener(try await authority.server(), clients: authority), clients: clients,
                upstreams: callers.map { client, name in
                    "  - {host: shared.test, url: \"\(origin.url)\", allow_plaintext: true, client: \(client), "
                        + "callers: {certificates: [\"\(name)\"]}}"
                }))
        func status(_ pair: PrivateCA.Certificate?) async throws -> String {
            let shown = pair.map { ["--proxy-cert", $0.certificateFile, "--proxy-key", $0.keyFile] } ?? []
            return try await curl(
                shown + [
                    "-o", "/dev/null", "-w", "%{http_code}", "--proxy", "https://localhost:\(proxy.port)",
                    "http://shared.test/",
                ]
            ).output
        }
        for name in ["reports", "imports"] {
            #expect(try await status(authority.client(name)) == "200", "\(proxy.log)")
            #expect(origin.requests.last?.values("Authorization") == ["Bearer token-of-\(name)"])
        }
        #expect(try await status(authority.client("nobody")) == "403")
        #expect(try await status(nil) == "000", "a certificate is required")
        #expect(try await status(PrivateCA(commonName: "another").client("reports")) == "000")
        #expect(origin.requests.count == 2)
    }

    /// The serial number of the certificate that the listener shows.
    private func serial(_ port: UInt16) async throws -> String {
        try await ChildProcess.run([
            "sh", "-c",
            "openssl s_client -connect 127.0.0.1:\(port) -alpn h2,http/1.1 </dev/null 2>/dev/null "
                + "| tee /dev/stderr | openssl x509 -noout -serial",
        ]).transcript
    }

    @Test func `a listener with TLS shows a renewed certificate at once, and a broken one changes nothing`()
        async throws
    {
        let folder = try TemporaryDirectory()
        func put(_ certificate: PrivateCA.Certificate, key: PrivateCA.Certificate? = nil) throws {
            for (file, name) in [(certificate.certificateFile, "cert.pem"), ((key ?? certificate).keyFile, "key.pem")] {
                let text = try String(contentsOfFile: file, encoding: .utf8)
                let next = try folder.write(text, to: "next")
                try #require(unsafe rename(next, folder.path(of: name)) == 0)
            }
        }
        func number(_ certificate: PrivateCA.Certificate) async throws -> String {
            let run = try await ChildProcess.run([
                "openssl", "x509", "-noout", "-serial", "-in", certificate.certificateFile,
            ])
            return run.output.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let (one, two) = (try await authority.server(), try await authority.server())
        try put(one)
        let proxy = try await RunningProxy(
            to: origin,
            proxy:
                "listen: {address: 127.0.0.1:0, tls: {cert_file: \(folder.path)/cert.pem, key_file: \(folder.path)/key.pem}}"
        )
        let first = try await serial(proxy.port)
        #expect(try await first.contains(number(one)), "\(first)")
        #expect(first.contains("ALPN protocol: http/1.1"), "\(first)")
        // Another one's key.
        try put(two, key: one)
        try await eventually("the log") { proxy.log.contains("a file of TLS can't be used") }
        #expect(try await serial(proxy.port).contains(number(one)))
        try put(two)
        try await eventually("the log") {
            proxy.log.contains("new connections use them")
        }
        #expect(try await serial(proxy.port).contains(number(two)))
    }

    @Test func `a reload to TLS ends plain connections, and back again`() async throws {
        let pair = try await authority.server()
        let proxy = try await RunningProxy(to: origin)
        let client = try await RawClient.connect(port: proxy.port)
        let request = "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n"
        try await client.send(request)
        #expect(try await client.response(to: "GET").status == 200)
        let file = proxy.directory.path(of: "config.yaml")
        let plain = try String(contentsOfFile: file, encoding: .utf8)
        try plain.replacing("listen: 127.0.0.1:0", with: Self.listener(pair)).write(
            toFile: file, atomically: true, encoding: .utf8)
        proxy.process.signal(SIGHUP)
        try await eventually("the log") { proxy.log.contains("the configuration was read again and is in use") }
        try await client.send(request)
        #expect(try await client.response(to: "GET").status == 503)
        let secure = ["--proxy", "https://localhost:\(proxy.port)", "http://api.test/"]
        #expect(try await curl(secure).output == "ok")
        #expect(origin.requests.count == 2)
    }

    @Test func `check names the TLS of a listener, and finds files that do not fit`() async throws {
        let (one, two) = (try await authority.server(), try await authority.server())
        func check(_ listener: String, _ command: [String] = ["check"]) async throws -> ChildProcess {
            let folder = try TemporaryDirectory()
            let file = try folder.write("proxy:\n  \(listener)\n  unmatched: forward\n", to: "config.yaml")
            return try await RunningProxy.run([command[0], "--config", file] + command.dropFirst())
        }
        let good = try await check(Self.listener(one))
        #expect(good.output.contains("  https://127.0.0.1:0\n"), "\(good.transcript)")
        #expect(good.output.contains("certificate CN=server, until "), "\(good.output)")
        let bad = try await check(Self.listener(one).replacing(one.keyFile, with: two.keyFile))
        #expect(bad.ending == .exited(78), "\(bad.transcript)")
        #expect(bad.errors.contains("proxy.listen.tls.cert_file"), "\(bad.errors)")
        let missing = try await check(Self.listener(one).replacing(one.certificateFile, with: "/nowhere.pem"))
        #expect(missing.errors.contains("can't use /nowhere.pem: there is no such file"), "\(missing.errors)")
        let exec = try await check(
            Self.listener(one).replacing("127.0.0.1:0", with: "127.0.0.1:18443"), ["exec", "--", "true"])
        #expect(exec.errors.contains("the proxy has no listener without TLS"), "\(exec.transcript)")
    }
}
