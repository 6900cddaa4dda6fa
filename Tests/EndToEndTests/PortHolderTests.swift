import Foundation
import TestSupport
import Testing

@Suite(
    "who holds a port that is in use", .timeLimit(.minutes(2)),
    .enabled(if: geteuid() == 0, "only root may look into the proxy, which forbids dumps"))
struct PortHolderTests {
    private func upstreams(_ more: String = "") -> String { "upstreams: [{host: a.example.com\(more)}]" }

    @Test func `a second proxy with the same admin.listen is told who has the port, and what to do`() async throws {
        let directory = try TemporaryDirectory()
        // The socket's name is made of the port, so both are taken.
        let environment: [String: String?] = ["XDG_RUNTIME_DIR": directory.path]
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: directory.path)
        let port = try freePort()
        let text = "proxy: {listen: \"127.0.0.1:0\"}\nadmin: {listen: \"127.0.0.1:\(port)\"}\n" + upstreams()
        let first = try await RunningProxy(text, environment: environment)
        _ = try await first.administration()
        let file = try directory.write(text, to: "c.yaml")
        let second = try await RunningProxy.run(["serve", "--config", file], environment: environment)
        #expect(second.ending == .exited(1))
        let line = try #require(second.errors.split(separator: "\n").first { $0.contains("the proxy stopped") })
        #expect(line.contains("held_by=\"heimdallr-proxy (pid \(first.process.pid))\""), "\(line)")
        #expect(line.contains("127.0.0.1:\(port)"), "\(line)")
        #expect(line.contains("what_to_do=\"end that one, or write another port into admin.listen\""), "\(line)")
        // The first one has kept both.
        let status = try await RunningProxy.run(["status", "--exit-zero", "--config", file], environment: environment)
        #expect(status.ending == .exited(0), "\(status.transcript)")
    }

    @Test func `a port or a socket of the proxy's own: where to write another one`() async throws {
        let directory = try TemporaryDirectory()
        let first = try await RunningProxy(
            "proxy: {listen: [\"127.0.0.1:0\", \"unix:FOLDER/p.sock\"]}\nadmin: {listen: \"127.0.0.1:0\", socket: FOLDER/a.sock}\n"
                + upstreams(), listeners: 2)
        _ = try await first.administration()
        let folder = first.directory.path
        let any = "proxy: {listen: \"127.0.0.1:0\"}\n"
        for (text, key, another) in [
            ("proxy: {listen: \"127.0.0.1:\(first.port)\"}\n" + upstreams(), "proxy.listen", "port"),
            ("proxy: {listen: \"unix:\(folder)/p.sock\"}\n" + upstreams(), "proxy.listen", "path"),
            (any + upstreams(", listen: \"127.0.0.1:\(first.port)\""), "upstreams[0].listen", "port"),
            (
                any + "admin: {listen: \"127.0.0.1:0\", socket: \(folder)/a.sock}\n" + upstreams(), "admin.socket",
                "path"
            ),
        ] {
            let run = try await RunningProxy.run(["serve", "--config", try directory.write(text, to: "c.yaml")])
            #expect(run.ending == .exited(1))
            #expect(
                run.errors.contains("held_by=\"heimdallr-proxy (pid \(first.process.pid))\""), "\(key) \(run.errors)")
            #expect(
                run.errors.contains("what_to_do=\"end that one, or write another \(another) into \(key)\""),
                "\(key) \(run.errors)")
        }
    }
}
