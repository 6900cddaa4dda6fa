import Foundation
import TestSupport
import Testing

@Suite("a start that fails says by its exit code whether the next one may succeed", .timeLimit(.minutes(2)))
struct AwaitedFileTests {
    private static let clients = """
        clients:
          api: {token_endpoint: "https://a.test/", client_id: a, CLIENT}
        upstreams: [{host: a.test, client: api}]
        """

    private static func client(_ lines: String) -> String { clients.replacing("CLIENT", with: lines) }

    /// Configurations with one file that is not there yet, `FOLDER/late`.
    private static let awaiting: [String] = [
        client("client_key: {file: FOLDER/late}"),
        client("client_secret: s, tls: {ca_file: FOLDER/late}"),
        client("client_secret: s, tls: {cert_file: FOLDER/late, key_file: FOLDER/late}"),
        "upstreams: [{host: a.test}]\nstore: {kind: file, directory: FOLDER/store, key: {file: FOLDER/late}}",
        "upstreams: [{host: a.test}]\nstore: {kind: file, directory: FOLDER/late/store, key: {file: FOLDER/key}}",
        "upstreams: [{host: a.test}]\naudit: {file: FOLDER/late/audit}",
    ]

    private static func start(_ text: String, _ prepare: (TemporaryDirectory) throws -> Void) async throws
        -> (start: ChildProcess, check: ChildProcess)
    {
        let folder = try TemporaryDirectory()
        let key = try folder.write(String(repeating: "k", count: 32), to: "key")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
        try prepare(folder)
        let listen = text.contains("proxy:") ? "" : "proxy: {listen: \"127.0.0.1:0\"}\n"
        let file = try folder.write((listen + text).replacing("FOLDER", with: folder.path), to: "config.yaml")
        return (
            try await RunningProxy.run(["serve", "--config", file]),
            try await RunningProxy.run(["check", "--config", file])
        )
    }

    @Test("a file or folder that is not there yet is a failure that may pass", arguments: 0..<6)
    func missing(index: Int) async throws {
        let (start, check) = try await Self.start(Self.awaiting[index]) { _ in }
        #expect(start.ending == .exited(1), "\(start.transcript)")
        #expect(check.ending == .exited(78), "\(check.transcript)")
    }

    @Test("an empty file is one that is not written yet", arguments: [0, 1, 2, 3])
    func empty(index: Int) async throws {
        let (start, _) = try await Self.start(Self.awaiting[index]) { try $0.write("", to: "late") }
        #expect(start.ending == .exited(1), "\(start.transcript)")
    }

    @Test("a file with wrong content is wrong until somebody changes it", arguments: [0, 1, 2])
    func wrong(index: Int) async throws {
        let (start, _) = try await Self.start(Self.awaiting[index]) { try $0.write("horse", to: "late") }
        #expect(start.ending == .exited(78), "\(start.transcript)")
    }

    @Test func `a wrong key of the configuration decides, whatever file is awaited beside it`() async throws {
        let (start, _) = try await Self.start(Self.awaiting[0] + "\nno_such_key: 1") { _ in }
        #expect(start.ending == .exited(78), "\(start.transcript)")
    }

    @Test func `the unit tries for ever what may pass, and never what is wrong`() throws {
        let unit = try String(
            contentsOfFile: Repository.root + "/deploy/systemd/heimdallr-proxy.service", encoding: .utf8)
        let lines = unit.split(separator: "\n").map(String.init)
        #expect(lines.contains("StartLimitIntervalSec=0"))
        #expect(lines.contains("Restart=on-failure"))
        #expect(lines.contains("RestartPreventExitStatus=2 78"))
        let unitPart = lines.prefix { $0 != "[Service]" }
        #expect(unitPart.contains("StartLimitIntervalSec=0"), "systemd.unit(5): a key of [Unit]")
    }
}
