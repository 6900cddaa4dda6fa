import Foundation
import TestSupport
import Testing

@Suite(
    "the process is not dumpable", .timeLimit(.minutes(2)),
    .enabled(if: geteuid() == 0, "only root may act as another user"))
struct DumpTests {
    private struct Memory: Decodable, Equatable {
        var read: Bool
        var core: Bool
    }

    /// A folder for the core file, which the program may write to.
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: directory.path)
    }

    private func memory(of program: [String]) async throws -> Memory {
        let output = try await ChildProcess.output(
            of: ["env", "-C", directory.path, "python3", fixture("dumps.py"), "65534"] + program)
        return try JSONDecoder().decode(Memory.self, from: Data(output.utf8))
    }

    @Test func `another process of its user can't read its memory, and a fatal signal leaves no core`() async throws {
        let sleeper = "import sys, time; print('listening', file=sys.stderr, flush=True); time.sleep(60)"
        let other = try await memory(of: ["python3", "-c", sleeper])
        withKnownIssue("some machines forbid it for all programs", isIntermittent: true) {
            #expect(other == Memory(read: true, core: true))
        }
        let file = try directory.write(
            "proxy: {listen: \"127.0.0.1:0\"}\nupstreams: [{host: api.test, intercept: true}]", to: "config.yaml")
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        let proxy = try await memory(of: [try Repository.executable(), "serve", "--config", file])
        #expect(proxy == Memory(read: false, core: false))
    }
}
