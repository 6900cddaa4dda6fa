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
        _ endpoint: TokenEndpoint, listen: UInt16 = 0, hosts: [String] = ["api.test"], more: String = ""
    ) -> ProxyConfiguration {
        ProxyConfiguration(
            listen: listen, proxy: "intercept: true",
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
        #expect(late.errors.contains("there is no running proxy"), "\(late.transcript)")
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

    @Test func `the files follow a changed port`() async throws {
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

    @Test func `a program that does not trust it has one line in the log`() async throws {
        let proxy = try await RunningProxy(configuration(try .plain()))
        let run = try await ChildProcess.run(
            ["curl", "-sS", "-x", proxy.url, "https://api.test/"], environment: Self.quiet)
        #expect(run.ending == .exited(60), "\(run.transcript)")
        try await eventually("its line") { proxy.log.contains("a program got no TLS from the proxy") }
        #expect(proxy.log.components(separatedBy: "a program got no TLS").count == 2)
        #expect(proxy.log.contains("target=api.test:443"))
        #expect(origin.requests.isEmpty)
    }
}
