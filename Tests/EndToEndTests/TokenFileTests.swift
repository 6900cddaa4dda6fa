import Foundation
import TestSupport
import Testing

@Suite("token files: programs that read a client's token in a file", .timeLimit(.minutes(3)))
struct TokenFileTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private var path: String { folder.path(of: "api.token") }

    private func proxy(_ endpoint: TokenEndpoint, _ more: String = "") async throws -> RunningProxy {
        try await RunningProxy(
            to: "http://127.0.0.1:1", client: "exportable: true\nfile: {path: \(path)\(more)}", admin: "",
            tokenEndpoint: endpoint, more: "audit: {file: FOLDER/audit.jsonl}")
    }

    private func content() -> String? { try? String(contentsOfFile: path, encoding: .utf8) }

    /// A token endpoint whose tokens are good for four seconds, and an API that knows when each was issued.
    private final class ShortLives: Sendable {
        let issued = Recorder<(token: String, at: ContinuousClock.Instant)>()
        let refused = Recorder<String>()
        let accepted = Recorder<String>()

        func endpoint() throws -> TokenEndpoint {
            try TokenEndpoint { [issued] _, number in
                issued.append(("token-\(number)", .now))
                return .token("token-\(number)", expiresIn: "4")
            }
        }

        func api() throws -> RecordingOrigin {
            try RecordingOrigin { [self] exchange in
                let given = exchange.head.fields.value("Authorization") ?? ""
                let match = issued.all.first { "Bearer \($0.token)" == given }
                // A second for the way.
                let isGood = match.map { ContinuousClock.now - $0.at < .seconds(5) } ?? false
                (isGood ? accepted : refused).append(given)
                try exchange.respond(isGood ? 200 : 401, fields: [("Content-Type", "text/plain")], body: "up 1\n")
            }
        }
    }

    @Test func `Prometheus scrapes over three lives of the token without a failure`() async throws {
        let lives = ShortLives()
        let origin = try lives.api()
        let proxy = try await proxy(lives.endpoint())
        try await eventually("the file is there") { content() != nil }
        let configuration = try folder.write(
            """
            global: {scrape_interval: 250ms, scrape_timeout: 250ms}
            scrape_configs:
              - job_name: api
                authorization: {credentials_file: \(path)}
                static_configs: [{targets: ["\(origin.authority)"]}]
            """, to: "prometheus.yaml")
        let prometheus = try ChildProcess([
            "prometheus", "--config.file=\(configuration)", "--storage.tsdb.path=\(folder.path)/data",
            "--web.listen-address=127.0.0.1:0", "--log.level=warn",
        ])
        defer { prometheus.kill() }
        try await eventually("four tokens are used", within: .seconds(90)) {
            if prometheus.ending != nil { throw TestFailure(prometheus.transcript) }
            return Set(lives.accepted.all).count >= 4
        }
        #expect(lives.refused.all.isEmpty, "\(lives.refused.all)")
        // Nothing but the token's own files, and no draft of one.
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(!names.contains { $0.hasPrefix(".api.token") }, "\(names)")
        let audit = try proxy.directory.read("audit.jsonl")
        #expect(
            audit.contains("\"audit\":\"exported\",\"client\":\"api\",\"format\":\"plain\"") && audit.contains(path))
        #expect(!audit.contains("token-1"))
        #expect(try await proxy.terminate() == .exited(0))
        #expect(content() == nil)
    }

    @Test func `kubectl reads the token in the file`() async throws {
        let origin = try await SecureOrigin(packages: false)
        let proxy = try await proxy(TokenEndpoint.plain())
        try await eventually("the file is there") { content() != nil }
        let config = try folder.write(
            """
            apiVersion: v1
            kind: Config
            current-context: c
            contexts: [{name: c, context: {cluster: c, user: u}}]
            clusters: [{name: c, cluster: {server: "\(origin.url)", certificate-authority: \(origin.certificateFile)}}]
            users: [{name: u, user: {tokenFile: \(path)}}]
            """, to: "kubeconfig")
        let run = try await ChildProcess.run(
            [try Repository.python("kubectl"), "get", "--raw", "/version", "--kubeconfig", config],
            environment: InterceptedProgram.clean.merging(["HOME": folder.path]) { $1 })
        #expect(run.output == "answer", "\(run.transcript)")
        #expect(
            origin.recording.requests.map { $0.values("Authorization") } == [["Bearer \(TokenEndpoint.plainToken)"]])
        #expect(proxy.process.ending == nil)
    }

    @Test func `the file has its mode and format, and goes with the sign-out`() async throws {
        let endpoint = try TokenEndpoint([.token("token-one"), .error("invalid_client")])
        let proxy = try await proxy(endpoint, ", mode: \"0640\", format: header")
        let socket = try await proxy.administration().socket
        try await eventually("the file is there") { content() == "Authorization: Bearer token-one\n" }
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o640)
        let status = try await RunningProxy.run(["status", "--socket", socket])
        #expect(status.output.contains("token file \(path): written"), "\(status.output)")
        let json = try await RunningProxy.run(["status", "--json", "--socket", socket])
        #expect(json.output.contains("\"is_written\": true"), "\(json.output)")
        let check = try await RunningProxy.run(["check", "--config", proxy.directory.path(of: "config.yaml")])
        #expect(check.output.contains("api: \(path) (header, mode 640)"), "\(check.transcript)")
        #expect(try await RunningProxy.run(["logout", "api", "--local", "--socket", socket]).ending == .exited(0))
        try await eventually("the file is removed") { content() == nil }
        // Time itself: a later look does not bring it back.
        try await Task.sleep(for: .milliseconds(250))
        #expect(content() == nil)
    }

    @Test func `an ended token has no file, also when the server is down`() async throws {
        let lives = ShortLives()
        let endpoint = try TokenEndpoint { [issued = lives.issued] _, number in
            guard number == 0 else { return TokenEndpointAnswer(503) }
            issued.append(("token-0", .now))
            return .token("token-0", expiresIn: "3")
        }
        let proxy = try await proxy(endpoint)
        try await eventually("the file is there") { content() != nil }
        let issue = try #require(lives.issued.all.first).at
        try await eventually("the file is removed") { content() == nil }
        #expect(ContinuousClock.now - issue < .seconds(20))
        #expect(proxy.process.ending == nil)
    }

    @Test func `a link or a folder that others may write to is refused by check, and gets no token`() async throws {
        let open = folder.path(of: "open")
        try FileManager.default.createDirectory(
            atPath: open, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o777])
        let target = try folder.write("precious", to: "target")
        let link = folder.path(of: "link")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
        for (file, reason) in [
            ("\(open)/t", "can be written by others"), (link, "is a link"), ("\(link)/t", "is not a folder"),
        ] {
            let text = ProxyConfiguration(
                tokenEndpoint: try TokenEndpoint.plain().url, client: "exportable: true\nfile: {path: \(file)}",
                admin: "",
                upstreams: ProxyConfiguration.upstream(url: "http://127.0.0.1:1")
            ).text
            try folder.write(ProxyConfiguration.secret, to: "secret")
            let config = try folder.write(text.replacing("FOLDER", with: folder.path), to: "config.yaml")
            let run = try await RunningProxy.run(["check", "--config", config])
            #expect(run.ending == .exited(78) && run.errors.contains("clients.api.file"), "\(run.transcript)")
            #expect(run.errors.contains(reason) || file.hasPrefix(link + "/"), "\(run.errors)")
        }
        #expect(try folder.read("target") == "precious")
        #expect(try FileManager.default.contentsOfDirectory(atPath: open).isEmpty)
    }
}
