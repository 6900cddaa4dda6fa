import Foundation
import TestSupport
import Testing

@Suite("exec beside a proxy of another user", .enabled(if: geteuid() == 0, "needs root"), .timeLimit(.minutes(3)))
struct ForeignProxyTests {
    private static let (proxyUser, programUser) = (65534, 1234)

    private let directory: TemporaryDirectory
    private let origin: RecordingOrigin
    private let endpoint: TokenEndpoint
    private let program: String
    /// As systemd makes a RuntimeDirectory.
    private let runtime: RuntimeFolder
    private let port: UInt16

    private final class RuntimeFolder: Sendable {
        let path = "/run/heimdallr-tests-\(UInt32.random(in: 0 ... .max))"
        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    init() async throws {
        (directory, runtime) = (try TemporaryDirectory(), RuntimeFolder())
        origin = try RecordingOrigin { try $0.respond(body: "ok") }
        endpoint = try .plain()
        port = try freePort()
        program = directory.path(of: "heimdallr-proxy")
        try Self.set(0o755, directory.path)
        try await ChildProcess.output(of: ["cp", Repository.executable(), program])
        for (folder, mode, user) in [
            (runtime.path, 0o755, Self.proxyUser), (directory.path(of: "credentials"), 0o700, Self.proxyUser),
            (directory.path(of: "home"), 0o700, Self.programUser),
        ] {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            try Self.set(mode, folder, owner: user)
        }
        try directory.write("client-secret-9876543210", to: "credentials/items")
        try Self.set(0o600, directory.path(of: "credentials/items"), owner: Self.proxyUser)
    }

    private static func set(_ mode: Int, _ path: String, owner: Int = 0) throws {
        try FileManager.default.setAttributes(
            [.posixPermissions: mode, .ownerAccountID: owner, .groupOwnerAccountID: owner], ofItemAtPath: path)
    }

    private func configuration(proxy: String = "intercept: true", socket: String? = nil) throws -> String {
        let text = """
            proxy:
              listen: 127.0.0.1:\(port)
              \(proxy)
            admin: {listen: 127.0.0.1:0, socket: \(socket ?? runtime.path + "/admin.sock"), token: {file: "${CREDENTIALS_DIRECTORY}/token"}}
            clients:
              api:
                allow_plaintext: true
                token_endpoint: \(endpoint.url)
                client_id: "${CLIENT_ID}"
                client_secret: {file: "${CREDENTIALS_DIRECTORY}/items"}
            upstreams: [{host: api.test, url: \(origin.url), allow_plaintext: true, client: api}]
            """
        let file = try directory.write(text, to: "config.yaml")
        try Self.set(0o644, file)
        return file
    }

    private func serve(_ file: String, in folder: String?) async throws -> ChildProcess {
        try directory.write(String(repeating: "t", count: 32), to: "credentials/token")
        try Self.set(0o600, directory.path(of: "credentials/token"), owner: Self.proxyUser)
        let process = try ChildProcess(
            [
                "setpriv", "--reuid=\(Self.proxyUser)", "--regid=\(Self.proxyUser)", "--clear-groups", program,
                "--config", file,
            ],
            environment: InterceptedProgram.clean.merging([
                "CREDENTIALS_DIRECTORY": directory.path(of: "credentials"), "CLIENT_ID": "the-tests",
                "XDG_RUNTIME_DIR": folder,
            ]) { $1 })
        try await eventually("the proxy listens", within: .seconds(30)) {
            if process.ending != nil { throw TestFailure(process.transcript) }
            return process.errors.contains(" listening ")
        }
        return process
    }

    private func exec(_ file: String, _ command: [String]) async throws -> ChildProcess {
        try await ChildProcess.run(
            [
                "setpriv", "--reuid=\(Self.programUser)", "--regid=\(Self.programUser)", "--clear-groups", program,
                "exec",
            ]
                + ["--config", file, "--"] + command,
            environment: InterceptedProgram.clean.merging([
                "XDG_RUNTIME_DIR": directory.path(of: "home"), "CREDENTIALS_DIRECTORY": nil, "CLIENT_ID": nil,
            ]) { $1 })
    }

    @Test func `another user's program uses and trusts the proxy, and needs none of its secrets`() async throws {
        let file = try configuration()
        let proxy = try await serve(file, in: runtime.path)
        let script = "curl -sS https://api.test/x && echo \" $SSL_CERT_FILE $WGETRC\""
        let run = try await exec(file, ["sh", "-c", script])
        #expect(run.output.hasPrefix("ok \(directory.path)/home/"), "\(run.transcript)")
        #expect(origin.requests.map { $0.values("Authorization") } == [["Bearer \(TokenEndpoint.plainToken)"]])
        // Files that can name code are the program's own, not the proxy's.
        #expect(!run.output.contains(runtime.path))
        let again = try await exec(file, ["sh", "-c", script])
        #expect(again.output == run.output, "\(again.transcript)")
        // The secret itself stays with the proxy.
        let secret = try await exec(file, ["cat", directory.path(of: "credentials/items")])
        #expect(secret.ending == .exited(1) && secret.output.isEmpty)
        try await proxy.stop()
        let late = try await exec(file, ["true"])
        #expect(late.errors.contains("start the proxy first"), "\(late.transcript)")
    }

    @Test func `the roots of the listener's user count below a sticky folder, too`() async throws {
        let shared = directory.path(of: "shared")
        try FileManager.default.createDirectory(atPath: shared, withIntermediateDirectories: false)
        try Self.set(0o755, shared, owner: Self.proxyUser)
        let file = try configuration(socket: "\(shared)/admin.sock")
        let proxy = try await serve(file, in: shared)
        let run = try await exec(file, ["curl", "-sS", "https://api.test/x"])
        #expect(run.output == "ok", "\(run.transcript)")
        try await proxy.stop()
    }

    @Test func `exec says what is missing when a running proxy's trust files can't be found`() async throws {
        let file = try configuration()
        let proxy = try await serve(file, in: directory.path(of: "credentials"))
        let run = try await exec(file, ["true"])
        #expect(run.ending == .exited(1))
        #expect(!run.errors.contains("start the proxy first"), "\(run.errors)")
        for word in ["a proxy listens at 127.0.0.1:\(port)", "/run/heimdallr-proxy", runtime.path, "0755"] {
            #expect(run.errors.contains(word), "\(run.errors)")
        }
        try await proxy.stop()
    }

    @Test func `exec names the secret of its user and the variable of an address that it lacks`() async throws {
        let user = directory.path(of: "credentials/items")
        let users = try configuration(proxy: "users: {alice: {file: \(user)}, bob: {env: BOB_PASSWORD}}")
        for (name, word) in [("alice", "credentials/items"), ("bob", "BOB_PASSWORD")] {
            let run = try await ChildProcess.run([
                "setpriv", "--reuid=\(Self.programUser)", "--clear-groups", program, "exec", "--config", users,
                "--user",
                name, "--", "true",
            ])
            #expect(run.ending == .exited(1) && run.errors.contains(word), "\(run.transcript)")
        }
        let file = try directory.write(
            "proxy: {listen: \"${ADDRESS}\"}\nupstreams: [{host: a.test}]", to: "address.yaml")
        try Self.set(0o644, file)
        let run = try await exec(file, ["true"])
        #expect(run.ending == .exited(78) && run.errors.contains("ADDRESS is not set"), "\(run.transcript)")
    }
}
