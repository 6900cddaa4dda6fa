import Foundation
import TestSupport
import Testing

@Suite("heimdallr-proxy token: tokens for programs outside the proxy", .timeLimit(.minutes(3)))
struct TokenCommandTests {
    private let origin: RecordingOrigin

    init() throws { origin = try RecordingOrigin() }

    private func token(_ socket: String, _ words: String...) async throws -> ChildProcess {
        try await RunningProxy.run(["token", "api", "--socket", socket] + words)
    }

    @Test func `the running proxy gives out no token of a client without exportable, whoever asks`() async throws {
        let proxy = try await RunningProxy(to: origin, admin: "")
        let socket = try await proxy.administration().socket
        #expect(try await proxy.get("http://api.test/").status == 200)
        let run = try await token(socket)
        #expect(run.ending == .exited(1) && run.output.isEmpty)
        #expect(run.errors.contains("exportable: true"), "\(run.errors)")
        let raw = try await ChildProcess.run([
            "curl", "-sS", "-i", "--unix-socket", socket, "http://localhost/token/api",
        ])
        #expect(raw.output.contains("403") && !raw.output.contains(TokenEndpoint.plainToken), "\(raw.output)")
    }

    @Test func `an exportable client's token is printed, and a reload takes the permission back`() async throws {
        let proxy = try await RunningProxy(to: origin, client: "exportable: true", admin: "")
        let socket = try await proxy.administration().socket
        #expect(try await token(socket).output == "\(TokenEndpoint.plainToken)\n")
        let file = proxy.directory.path(of: "config.yaml")
        let text = try proxy.directory.read("config.yaml").replacing("exportable: true", with: "exportable: false")
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        #expect(try await RunningProxy.run(["reload", "--socket", socket]).ending == .exited(0))
        let run = try await token(socket)
        #expect(run.ending == .exited(1) && run.output.isEmpty, "\(run.transcript)")
        // The token itself stays.
        #expect(proxy.tokenRequests == 1)
    }

    @Test func `a program of exec --serve reaches no token at the admin socket, even an exportable one`() async throws {
        let directory = try TemporaryDirectory()
        try directory.write("client-secret-9876543210", to: "secret")
        let endpoint = try TokenEndpoint.plain()
        let text = ProxyConfiguration(
            listen: 1, tokenEndpoint: endpoint.url, client: "exportable: true", admin: "",
            upstreams: ProxyConfiguration.upstream(url: origin.url)
        ).text
        let file = try directory.write(text.replacing("FOLDER", with: directory.path), to: "config.yaml")
        let socket = directory.path(of: "admin.sock")
        let script = """
            curl -sS http://api.test/x; "$1" token api --socket "$2"; echo $?
            curl -sS --unix-socket "$2" http://localhost/token/api
            """
        let run = try await ChildProcess.run(
            [try Repository.executable(), "exec", "--serve", "--config", file, "--", "sh", "-c", script, "sh"]
                + [try Repository.executable(), socket], environment: InterceptedProgram.clean)
        #expect(run.output.hasPrefix("ok1\n"), "\(run.transcript)")
        #expect(run.output.contains("exec --serve") && !run.transcript.contains(TokenEndpoint.plainToken))
        #expect(origin.requests.map { $0.values("Authorization") } == [["Bearer \(TokenEndpoint.plainToken)"]])
        #expect(endpoint.requests.count == 1)
    }
}
