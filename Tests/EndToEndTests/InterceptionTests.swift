import Foundation
import TestSupport
import Testing

@Suite("intercepted TLS, by the executable", .timeLimit(.minutes(3)))
struct InterceptionTests {
    private let folder: TemporaryDirectory
    private let origin: RecordingOrigin

    init() async throws {
        folder = try TemporaryDirectory()
        origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let keygen = try await RunningProxy.run(["keygen", "--output", folder.path(of: "key")])
        #expect(keygen.ending == .exited(0))
    }

    private var kept: String {
        "interception: {directory: \(folder.path)/kept, key: {file: \(folder.path)/key}}"
    }

    private static let quiet: [String: String?] = [
        "http_proxy": nil, "https_proxy": nil, "no_proxy": nil, "NO_PROXY": nil, "CURL_CA_BUNDLE": nil,
        "SSL_CERT_FILE": nil,
    ]

    private func configuration(
        _ endpoint: TokenEndpoint, listen: UInt16 = 0, hosts: [String] = ["api.test"], admin: String? = nil,
        more: String = ""
    ) -> ProxyConfiguration {
        ProxyConfiguration(
            listen: listen, proxy: "intercept: true", admin: admin,
            clients: [ProxyConfiguration.client(tokenEndpoint: endpoint.url)],
            upstreams: hosts.map { ProxyConfiguration.upstream($0, url: origin.url) }, more: more)
    }

    private func export(_ proxy: RunningProxy) async throws -> ChildProcess {
        try await RunningProxy.run(["ca", "export", "--config", proxy.directory.path(of: "config.yaml")])
    }

    private func curl(_ proxy: RunningProxy, trusting pem: String) async throws -> ChildProcess {
        let file = try folder.write(pem, to: "trusted.pem")
        return try await ChildProcess.run(
            ["curl", "-sS", "--cacert", file, "-x", proxy.url, "https://api.test/"], environment: Self.quiet)
    }

    @Test func `kept certificates are those of the next start, until the hosts change`() async throws {
        let endpoint = try TokenEndpoint.plain()
        var exported: [String] = []
        for hosts in [["api.test"], ["api.test"], ["api.test", "two.test"]] {
            let proxy = try await RunningProxy(configuration(endpoint, hosts: hosts, more: kept))
            let run = try await export(proxy)
            #expect(run.ending == .exited(0), "\(run.transcript)")
            exported.append(run.output)
            let answer = try await curl(proxy, trusting: run.output)
            #expect(answer.output == "ok", "\(answer.transcript)")
            #expect(try await proxy.terminate() == .exited(0))
        }
        #expect(exported[0] == exported[1])
        #expect(exported[1] != exported[2])
        #expect(exported[2].hasPrefix("-----BEGIN CERTIFICATE-----\n"))
        #expect(try folder.read("kept/roots.pem") == exported[2])
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.path(of: "kept")) {
            let text = FileManager.default.contents(atPath: folder.path(of: "kept/\(file)"))
            #expect(text?.range(of: Data("PRIVATE KEY".utf8)) == nil)
        }
        // Without the key they are of no use, and are not replaced.
        _ = try await RunningProxy.run(["keygen", "--output", folder.path(of: "other")])
        let other = kept.replacing("/key}", with: "/other}")
        let refused = try await RunningProxy.run([
            "ca", "export", "--config",
            folder.write(
                configuration(endpoint, more: other).text.replacing("FOLDER/secret", with: folder.path(of: "key")),
                to: "other.yaml"),
        ])
        #expect(refused.ending == .exited(1))
        #expect(refused.errors.contains("interception: "), "\(refused.transcript)")
    }

    @Test func `ca export writes what programs of other users trust, with and without the system's certificates`()
        async throws
    {
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(configuration(endpoint, more: kept))
        let files = folder.path(of: "trust")
        let run = try await RunningProxy.run([
            "ca", "export", "--config", proxy.directory.path(of: "config.yaml"), "--folder", files,
        ])
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(run.output == "")
        let roots = try await export(proxy).output
        #expect(try folder.read("trust/roots.pem") == roots)
        let bundle = try folder.read("trust/bundle.pem")
        #expect(bundle.hasSuffix(roots))
        #expect(bundle.utf8.count > roots.utf8.count)
        let answer = try await curl(proxy, trusting: bundle)
        #expect(answer.output == "ok", "\(answer.transcript)")
        for file in ["roots.pem", "bundle.pem", "truststore.jks"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(files)/\(file)")
            #expect(attributes[.posixPermissions] as? Int == 0o644, "\(file)")
        }
    }

    @Test func `exec beside a running proxy trusts it, and its files end with it`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(configuration(endpoint, listen: try freePort()))
        let file = proxy.directory.path(of: "config.yaml")
        let run = try await RunningProxy.run(
            ["exec", "--config", file, "--", "sh", "-c", "curl -sS https://api.test/ && echo \" $SSL_CERT_FILE\""],
            environment: Self.quiet)
        #expect(run.output.hasPrefix("ok /"), "\(run.transcript)")
        #expect(origin.requests.first?.fields.value("Authorization") == "Bearer \(token)")
        let bundle = String(run.output.dropFirst(3).dropLast())
        #expect(FileManager.default.fileExists(atPath: bundle))
        #expect(try await export(proxy).output.contains("BEGIN CERTIFICATE"))
        #expect(try await proxy.terminate() == .exited(0))
        #expect(!FileManager.default.fileExists(atPath: bundle))
        let late = try await RunningProxy.run(["exec", "--config", file, "--", "true"], environment: Self.quiet)
        #expect(late.ending == .exited(1))
        #expect(late.errors.contains("no running proxy"), "\(late.transcript)")
    }

    @Test func `a second start that fails leaves the files of the running proxy alone`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(configuration(endpoint, listen: try freePort()))
        let file = proxy.directory.path(of: "config.yaml")
        let before = try await export(proxy).output
        #expect(try await RunningProxy.run(["serve", "--config", file]).ending == .exited(1))
        #expect(try await export(proxy).output == before)
        let answer = try await curl(proxy, trusting: before)
        #expect(answer.output == "ok", "\(answer.transcript)")
    }

    @Test func `a reload and a start that can't listen leave the kept authority alone`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(configuration(endpoint, listen: try freePort(), more: kept))
        let before = try folder.read("kept/roots.pem")
        let busy = try RawListener()
        func write(port: UInt16, to file: String) throws {
            let other = configuration(endpoint, listen: port, hosts: ["api.test", "two.test"], more: kept)
            try proxy.directory.write(other.text.replacing("FOLDER", with: proxy.directory.path), to: file)
        }
        try write(port: busy.port, to: "config.yaml")
        proxy.process.signal(SIGHUP)
        try await eventually("the refusal") { proxy.log.contains("the former one stays in use") }
        try write(port: proxy.port, to: "other.yaml")
        let second = try await RunningProxy.run(["serve", "--config", proxy.directory.path(of: "other.yaml")])
        #expect(second.ending == .exited(1), "\(second.transcript)")
        #expect(try folder.read("kept/roots.pem") == before)
        let answer = try await curl(proxy, trusting: before)
        #expect(answer.output == "ok", "\(answer.transcript)")
    }

    @Test func `the trust files follow a changed port`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(configuration(endpoint, listen: try freePort()))
        let file = proxy.directory.path(of: "config.yaml")
        let moved = configuration(endpoint, listen: try freePort())
        try proxy.directory.write(
            moved.text.replacing("FOLDER", with: proxy.directory.path), to: "config.yaml")
        proxy.process.signal(SIGHUP)
        try await eventually("the reload") { proxy.log.contains("was read again") }
        let run = try await RunningProxy.run(
            ["exec", "--config", file, "--", "curl", "-sS", "https://api.test/"], environment: Self.quiet)
        #expect(run.output == "ok", "\(run.transcript)")
    }

    @Test func `a reload with other hosts makes a new authority, and says so`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(configuration(endpoint, more: kept))
        let before = try folder.read("kept/roots.pem")
        try proxy.directory.write(
            configuration(endpoint, hosts: ["api.test", "two.test"], more: kept).text
                .replacing("FOLDER", with: proxy.directory.path), to: "config.yaml")
        proxy.process.signal(SIGHUP)
        try await eventually("the new authority") { proxy.log.contains("there is a new authority") }
        let after = try folder.read("kept/roots.pem")
        #expect(after != before)
        let answer = try await curl(proxy, trusting: after)
        #expect(answer.output == "ok", "\(answer.transcript)")
    }

    @Test func `with permitted domains the list grows by reload, and nobody needs a new root`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let permitted =
            "interception: {permit: [grows.test], directory: \(folder.path)/kept, key: {file: \(folder.path)/key}}"
        func configuration(_ hosts: [String]) -> ProxyConfiguration {
            self.configuration(endpoint, hosts: hosts, more: permitted)
        }
        let proxy = try await RunningProxy(configuration(["api.test", "one.grows.test"]))
        let roots = try folder.read("kept/roots.pem")
        let file = try folder.write(roots, to: "trusted.pem")
        func curl(_ host: String, by proxy: RunningProxy) async throws -> ChildProcess {
            try await ChildProcess.run(
                ["curl", "-sS", "--cacert", file, "-x", proxy.url, "https://\(host)/"], environment: Self.quiet)
        }
        #expect(try await curl("two.grows.test", by: proxy).errors.contains("403"))
        func read(_ hosts: [String]) async throws {
            let before = proxy.log.components(separatedBy: "was read again").count
            try proxy.directory.write(
                configuration(hosts).text.replacing("FOLDER", with: proxy.directory.path), to: "config.yaml")
            proxy.process.signal(SIGHUP)
            try await eventually("the reload") { proxy.log.components(separatedBy: "was read again").count > before }
        }
        try await read(["api.test", "one.grows.test", "two.grows.test"])
        for host in ["api.test", "one.grows.test", "two.grows.test"] {
            let run = try await curl(host, by: proxy)
            #expect(run.output == "ok", "\(run.transcript)")
        }
        // Nor does a shorter list.
        try await read(["two.grows.test", "api.test"])
        #expect(try await curl("one.grows.test", by: proxy).errors.contains("403"))
        #expect(!proxy.log.contains("there is a new authority"))
        #expect(try await proxy.terminate() == .exited(0))
        // A restart keeps both roots.
        let next = try await RunningProxy(configuration(["api.test", "three.grows.test"]))
        for host in ["api.test", "three.grows.test"] {
            let run = try await curl(host, by: next)
            #expect(run.output == "ok", "\(run.transcript)")
        }
        #expect(try folder.read("kept/roots.pem") == roots)
        for file in try FileManager.default.contentsOfDirectory(atPath: folder.path(of: "kept")) {
            let content = FileManager.default.contents(atPath: folder.path(of: "kept/\(file)"))
            #expect(content?.range(of: Data("PRIVATE KEY".utf8)) == nil)
        }
    }

    @Test func `a wildcard is intercepted under exec, and why says so`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                listen: try freePort(), admin: "", clients: [ProxyConfiguration.client(tokenEndpoint: endpoint.url)],
                upstreams: [ProxyConfiguration.upstream("\"*.wild.test\"", url: origin.url, "intercept: true")]))
        let file = proxy.directory.path(of: "config.yaml")
        let run = try await RunningProxy.run(
            ["exec", "--config", file, "--", "curl", "-sS", "https://a.wild.test/", "https://b.wild.test/"],
            environment: Self.quiet)
        #expect(run.output == "okok", "\(run.transcript)")
        #expect(origin.requests.allSatisfy { $0.fields.value("Authorization") == "Bearer \(token)" })
        let why = try await RunningProxy.run(["why", "--config", file, "GET", "https://c.wild.test/x"])
        #expect(why.output.contains("*.wild.test"), "\(why.transcript)")
        #expect(why.ending == .exited(0))
        #expect(try await RunningProxy.run(["check", "--config", file]).ending == .exited(0))
    }

    /// Asks before and after a file is there by one connection, and then by another.
    private static let patient = """
        import http.client, os, ssl, sys, time
        port, roots, file = int(sys.argv[1]), sys.argv[2], sys.argv[3]
        client = http.client.HTTPSConnection("127.0.0.1", port, context=ssl.create_default_context(cafile=roots))
        client.set_tunnel("api.test")
        def get():
            client.request("GET", "/")
            answer = client.getresponse()
            answer.read()
            print(answer.status, answer.getheader("Connection"), flush=True)
        get()
        while not os.path.exists(file): time.sleep(0.02)
        get()
        try: get()
        except OSError as error: print(error)
        """

    @Test func `after a reload without interception, a connection ends with its next answer`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(configuration(endpoint, more: kept))
        let client = try ChildProcess([
            try Repository.python(), "-c", Self.patient, "\(proxy.port)", folder.path(of: "kept/roots.pem"),
            folder.path(of: "go"),
        ])
        try await eventually("the first answer") { client.output == "200 None\n" }
        try proxy.directory.write(
            configuration(endpoint, more: kept).text.replacing("intercept: true", with: "intercept: false")
                .replacing("FOLDER", with: proxy.directory.path), to: "config.yaml")
        proxy.process.signal(SIGHUP)
        try await eventually("the reload") { proxy.log.contains("was read again") }
        try folder.write("", to: "go")
        #expect(try await client.ended() == .exited(0), "\(client.transcript)")
        let lines = client.output.split(separator: "\n")
        #expect(lines.dropFirst().first == "200 close", "\(client.transcript)")
        #expect(lines.last?.contains("403") == true, "\(client.transcript)")
        #expect(origin.requests.count == 2)
    }

    // MARK: The operator's own certificates

    @Test func `an upstream may bring its own certificate, which is read again when it changes`() async throws {
        let authority = try await PrivateCA()
        func put(_ pair: PrivateCA.Certificate) throws {
            for (file, name) in [(pair.certificateFile, "cert.pem"), (pair.keyFile, "key.pem")] {
                let next = try folder.write(String(contentsOfFile: file, encoding: .utf8), to: "next")
                try #require(unsafe rename(next, folder.path(of: name)) == 0)
            }
        }
        try put(try await authority.server(["DNS:api.test"]))
        let own = """
            intercept: true
            tls: {server_cert_file: \(folder.path)/cert.pem, server_key_file: \(folder.path)/key.pem}
            """
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                listen: try freePort(), clients: [ProxyConfiguration.client(tokenEndpoint: endpoint.url)],
                upstreams: [ProxyConfiguration.upstream("api.test", url: origin.url, own)]))
        let file = proxy.directory.path(of: "config.yaml")
        // The program trusts it by itself, and exec has nothing to add.
        let run = try await RunningProxy.run(
            [
                "exec", "--config", file, "--", "curl", "-sS", "--cacert", authority.certificateFile,
                "https://api.test/",
            ],
            environment: Self.quiet)
        #expect(run.output == "ok", "\(run.transcript)")
        #expect(
            try await RunningProxy.run(
                ["exec", "--config", file, "--", "sh", "-c", "echo \"[$SSL_CERT_FILE]\""],
                environment: Self.quiet
            ).output == "[]\n")
        #expect(try await export(proxy).errors.contains("every intercepted upstream has a configured certificate"))
        let check = try await RunningProxy.run(["check", "--config", file])
        #expect(check.output.contains("tls.server_cert_file"), "\(check.transcript)")
        let doctor = try await RunningProxy.run(["doctor", "--no-token", "--config", file])
        #expect(
            doctor.output.contains("ok    intercept    upstreams[0].tls.server_cert_file: "), "\(doctor.transcript)")

        // One for another host: programs would refuse it, so check and doctor say it.
        try put(try await authority.server(["DNS:other.test"]))
        try await eventually("the log") {
            proxy.log.contains("new connections use them")
        }
        let refused = try await curl(
            proxy, trusting: String(contentsOfFile: authority.certificateFile, encoding: .utf8))
        #expect(refused.ending == .exited(60), "\(refused.transcript)")
        let warned = try await RunningProxy.run(["check", "--config", file])
        #expect(warned.errors.contains("the certificate is not for api.test"), "\(warned.transcript)")
        let ill = try await RunningProxy.run(["doctor", "--no-token", "--config", file])
        #expect(ill.output.contains("is not for api.test"), "\(ill.transcript)")
        #expect(ill.ending == .exited(1))
    }

    @Test func `doctor makes a handshake through the running proxy, and asks no server for anything`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                listen: try freePort(), clients: [ProxyConfiguration.client(tokenEndpoint: endpoint.url)],
                upstreams: [
                    ProxyConfiguration.upstream("api.test", url: origin.url, "intercept: true"),
                    ProxyConfiguration.upstream("\"*.wild.test\"", url: origin.url, "intercept: true"),
                ], more: kept))
        let file = proxy.directory.path(of: "config.yaml")
        let run = try await RunningProxy.run(["doctor", "--no-token", "--config", file], environment: Self.quiet)
        for part in [
            "holds the authorities of the intercepted hosts", "the running proxy's root is in",
            "the proxy opens TLS for api.test", "the proxy opens TLS for heimdallr-proxy-doctor.wild.test",
        ] { #expect(run.output.contains(part), "\(part): \(run.transcript)") }
        #expect(!proxy.log.contains("a program got no TLS"))
        #expect(origin.requests.allSatisfy { $0.line.hasPrefix("HEAD ") })
        #expect(try await proxy.terminate() == .exited(0))
        let alone = try await RunningProxy.run(["doctor", "--no-token", "--config", file], environment: Self.quiet)
        #expect(alone.output.contains("no proxy with this configuration is running"), "\(alone.transcript)")
        // Another key does not open the folder.
        _ = try await RunningProxy.run(["keygen", "--output", folder.path(of: "other")])
        try FileManager.default.removeItem(atPath: folder.path(of: "key"))
        try FileManager.default.moveItem(atPath: folder.path(of: "other"), toPath: folder.path(of: "key"))
        let locked = try await RunningProxy.run(["doctor", "--no-token", "--config", file], environment: Self.quiet)
        #expect(locked.output.contains("FAIL  intercept"), "\(locked.transcript)")
        #expect(locked.ending == .exited(1))
    }

    @Test func `a program that does not trust it has one line in the log, and one in the status`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(configuration(endpoint, admin: ""))
        let run = try await ChildProcess.run(
            ["curl", "-sS", "-x", proxy.url, "https://api.test/"], environment: Self.quiet)
        #expect(run.ending == .exited(60), "\(run.transcript)")
        try await eventually("its line") { proxy.log.contains("a program got no TLS from the proxy") }
        #expect(proxy.log.components(separatedBy: "a program got no TLS").count == 2)
        #expect(proxy.log.contains("target=api.test:443"))
        #expect(proxy.log.contains("caller=127.0.0.1") && proxy.log.contains("program=curl/"))
        #expect(proxy.log.contains("which sets CURL_CA_BUNDLE; if exec has started it, it replaces or ignores that"))
        #expect(origin.requests.isEmpty)
        let file = proxy.directory.path(of: "config.yaml")
        let status = try await RunningProxy.run(["status", "--config", file, "--exit-zero"])
        #expect(
            status.output.contains("Programs that got no TLS from the proxy:\n  api.test:443  curl/"),
            "\(status.transcript)")
        #expect(status.output.contains("which sets CURL_CA_BUNDLE"))
        let json = try await RunningProxy.run(["status", "--json", "--config", file, "--exit-zero"])
        #expect(json.output.contains("\"untrusting_programs\""), "\(json.transcript)")
    }
}
