import Foundation
import TestSupport
import Testing

@Suite("intercepted TLS, when several processes start", .timeLimit(.minutes(3)))
struct SharedAuthorityTests {
    private let folder: TemporaryDirectory
    private let endpoint: TokenEndpoint
    private let origin: RecordingOrigin

    init() async throws {
        folder = try TemporaryDirectory()
        endpoint = try TokenEndpoint.plain()
        origin = try RecordingOrigin { try $0.respond(body: "ok") }
    }

    /// Writes a configuration that intercepts `api.test`.
    private func write(listen: UInt16 = 0, more: String = "", to file: String) throws -> String {
        let configuration = ProxyConfiguration(
            listen: listen, tokenEndpoint: endpoint.url, proxy: "intercept: true",
            upstreams: ProxyConfiguration.upstream(url: origin.url), more: more)
        for (name, text) in configuration.files { try folder.write(text, to: name) }
        return try folder.write(configuration.text.replacing("FOLDER", with: folder.path), to: file)
    }

    /// The environment, without the variables of a proxy or of certificates.
    private var environment: [String: String?] {
        [
            "http_proxy": nil, "https_proxy": nil, "no_proxy": nil, "NO_PROXY": nil, "CURL_CA_BUNDLE": nil,
            "SSL_CERT_FILE": nil, "XDG_RUNTIME_DIR": folder.path,
        ]
    }

    @Test func `the first root in a folder is that of all processes that start at the same time`() async throws {
        let more = "interception: {directory: FOLDER/kept, key: {file: FOLDER/key}}"
        try folder.write(try await RunningProxy.run(["keygen"]).output, to: "key")
        let file = try write(more: more, to: "c.yaml")
        let program = try Repository.executable()
        let proxies = try (0..<2).map { _ in
            try ChildProcess([program, "--config", file], environment: environment)
        }
        let exports = try (0..<4).map { _ in
            try ChildProcess([program, "ca", "export", "--config", file], environment: environment)
        }
        let served = try ChildProcess(
            [program, "exec", "--serve", "--config", file, "--", "curl", "-sS", "https://api.test/"],
            environment: environment)
        for export in exports { #expect(try await export.ended() == .exited(0), "\(export.transcript)") }
        #expect(try await served.ended() == .exited(0), "\(served.transcript)")
        #expect(served.output == "ok")
        let root = try folder.read("kept/roots.pem")
        #expect(Set(exports.map(\.output)) == [root])
        let trusted = folder.path(of: "kept/roots.pem")
        for proxy in proxies {
            let address = try await eventually("it listens") {
                proxy.errors.firstMatch(of: /listening address=(\S+)\n/)?.1
            }
            let answer = try await ChildProcess.run(
                ["curl", "-sS", "--cacert", trusted, "-x", "http://\(address)", "https://api.test/"],
                environment: environment)
            #expect(answer.output == "ok", "\(answer.transcript)")
        }
        #expect(try folder.read("kept/roots.pem") == root)
    }

    @Test func `a port opens when the trust files are there`() async throws {
        for _ in 0..<3 {
            let port = try freePort()
            let proxy = try ChildProcess(
                [try Repository.executable(), "--config", try write(listen: port, to: "c.yaml")],
                environment: environment)
            let name = "heimdallr-proxy-\(port).127.0.0.1."
            let folders = [folder.path, "/run"]
            try await eventually("the port is open") {
                guard proxy.ending == nil else { throw TestFailure(proxy.transcript) }
                return (try? await RawClient.connect(port: port)) != nil
            }
            let written = folders.contains { parent in
                (try? FileManager.default.contentsOfDirectory(atPath: parent))?.contains {
                    $0.hasPrefix(name) && FileManager.default.fileExists(atPath: "\(parent)/\($0)/roots.pem")
                } ?? false
            }
            #expect(written, "\(proxy.transcript)")
            #expect(try await proxy.stop() == .exited(0))
        }
    }

    @Test func `exec and ca export wait for a proxy that is starting while its port is open`() async throws {
        let port = try freePort()
        let file = try write(listen: port, to: "c.yaml")
        let program = try Repository.executable()
        let manager = try ChildProcess(
            [
                "python3", Repository.fixture("activate.py"), "127.0.0.1:\(port)", "--", "sh", "-c",
                "echo held; while [ ! -e \(folder.path)/go ]; do sleep 0.05; done; exec \(program) --config \(file)",
            ], environment: environment)
        try await eventually("the socket is open") { manager.output.contains("held") }
        let commands = try [
            ["exec", "--config", file, "--", "curl", "-sS", "https://api.test/"], ["ca", "export", "--config", file],
        ]
        .map { try ChildProcess([program] + $0, environment: environment) }
        // Connections that nobody has accepted yet: the commands look for the proxy.
        let entry = ":" + String(format: "%04X", Int(port)) + " "
        try await eventually("both look for the proxy, or have given up") {
            // Foundation may read a part of such a file only.
            let table = try await ChildProcess.output(of: ["cat", "/proc/net/tcp"])
            let waiting = table.split(separator: "\n").count {
                $0.split(separator: " ").dropFirst().first.map { "\($0) ".hasSuffix(entry) } ?? false
            }
            // The listening socket's own entry, and one for each command.
            return waiting > 2 || commands.contains { $0.ending != nil }
        }
        try folder.write("", to: "go")
        for command in commands { #expect(try await command.ended() == .exited(0), "\(command.transcript)") }
        #expect(commands[0].output == "ok")
        #expect(commands[1].output.contains("BEGIN CERTIFICATE"))
        try await manager.stop()
    }
}
