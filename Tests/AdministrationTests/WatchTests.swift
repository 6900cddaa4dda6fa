import Foundation
import TestSupport
import Testing

@Suite("status --watch", .timeLimit(.minutes(2)))
struct WatchTests {
    private func watch(_ admin: AdministeredProxy, _ arguments: String...) throws -> ChildProcess {
        try ChildProcess(
            [try Repository.executable(), "status", "--watch", "--socket", admin.socket] + arguments)
    }

    @Test func `status --watch in a pipe writes a block each change, and Ctrl-C ends it well`() async throws {
        let admin = try await AdministeredProxy()
        try await admin.ready()
        let run = try watch(admin)
        defer { run.kill() }
        try await eventually("the first block") { run.output.contains("api.test") }
        // Time itself: it asks once a second.
        try await holds("no second block", for: .milliseconds(1300)) {
            run.output.components(separatedBy: "heimdallr-proxy 0").count == 2
        }
        #expect(try await admin.proxy.get("http://api.test/").status == 200)
        try await eventually("the second block") { run.output.contains("1 request, 0 server errors") }
        #expect(run.output.components(separatedBy: "heimdallr-proxy 0").count == 3)
        #expect(!run.output.contains("\u{1B}") && !run.output.contains("SEKRET"))
        run.signal(SIGINT)
        #expect(try await run.ended() == .exited(0))
    }

    @Test func `status --watch --json writes one JSON a line, and says that a proxy went`() async throws {
        let admin = try await AdministeredProxy()
        try await admin.ready()
        let run = try watch(admin, "--json")
        defer { run.kill() }
        try await eventually("the first line") { run.output.contains("\n") }
        #expect(try await admin.proxy.terminate() == .exited(0))
        try await eventually("the last line") { run.output.contains("does not answer") }
        run.signal(SIGINT)
        #expect(try await run.ended() == .exited(0))
        let lines = run.output.split(separator: "\n")
        #expect(lines.count >= 2)
        for line in lines {
            #expect(try JSONSerialization.jsonObject(with: Data(line.utf8)) is [String: Any], "\(line)")
        }
    }

    @Test func `status --watch on a terminal draws in place, and gives the screen back`() async throws {
        let admin = try await AdministeredProxy()
        try await admin.ready()
        let command = "'\(try Repository.executable())' status --watch --socket '\(admin.socket)'"
        let run = try ChildProcess([
            "timeout", "--foreground", "-s", "INT", "4", "script", "-qefc", command, "/dev/null",
        ])
        defer { run.kill() }
        try await eventually("two frames") { run.output.components(separatedBy: "\u{1B}[H").count > 2 }
        let frames = run.output.components(separatedBy: "\u{1B}[H")
        #expect(frames[0].contains("\u{1B}[?1049h\u{1B}[?25l"))
        for frame in frames.dropFirst().dropLast() {
            #expect(frame.contains("Client api") && frame.contains("\u{1B}[K"))
            #expect(!frame.contains("\u{1B}[2J"), "nothing is blanked first")
        }
    }

    @Test func `status --watch without a proxy says so at once`() async throws {
        let run = try await RunningProxy.run(["status", "--watch", "--socket", "/nowhere/admin.sock"])
        #expect(run.ending == .exited(1))
        #expect(run.errors.contains("no running proxy"))
    }
}
