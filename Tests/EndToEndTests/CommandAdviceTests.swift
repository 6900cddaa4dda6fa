import Foundation
import TestSupport
import Testing

@Suite("commands say what to do", .timeLimit(.minutes(2)))
struct CommandAdviceTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    @Test(arguments: ["init", "status"])
    func `store commands say which store they are for`(command: String) async throws {
        let key = try folder.write(String(repeating: "k", count: 32), to: "key")
        let stored = try folder.write(
            "store: {kind: file, directory: \(folder.path)/state, key: {file: \(key)}}\nupstreams: [{host: a.test}]",
            to: "file.yaml")
        let file = try await RunningProxy.run(["store", command, "--config", stored])
        #expect(file.ending == .exited(78), "\(file.transcript)")
        #expect(file.errors.contains("error: `store init` and `store status` are for a store in PostgreSQL"))
        #expect(file.errors.contains("keeps its tokens in \(folder.path)/state"), "\(file.errors)")
        #expect(file.errors.contains("heimdallr-proxy status"), "\(file.errors)")
        let playground = try await RunningProxy.run(
            ["store", command, "--config", Repository.root + "/config.yaml"])
        #expect(playground.ending == .exited(78), "\(playground.transcript)")
        #expect(playground.errors.contains("keeps its tokens in memory only"), "\(playground.errors)")
    }

    @Test func `reload after a change of admin's address says where it asked, and where the proxy listens`()
        async throws
    {
        let file = try folder.write(
            "admin: {listen: \"127.0.0.1:\(try freePort())\"}\nupstreams: []", to: "config.yaml")
        let run = try await RunningProxy.run(["reload", "--config", file])
        #expect(run.ending == .exited(1), "\(run.transcript)")
        #expect(run.errors.hasPrefix("error: no running proxy answers at /"), "\(run.errors)")
        #expect(run.errors.contains("the running proxy still listens at its former address"), "\(run.errors)")
    }

    @Test func `exec needs a listener that http_proxy can name`() async throws {
        let file = try folder.write(
            "proxy: {listen: \"unix:\(folder.path)/s\"}\nupstreams: [{host: a.test}]", to: "config.yaml")
        let run = try await RunningProxy.run(["exec", "--config", file, "--", "true"])
        #expect(run.ending == .exited(1), "\(run.transcript)")
        #expect(run.errors.contains("listens only on a Unix socket") && run.errors.contains("127.0.0.1:8080"))
    }
}
