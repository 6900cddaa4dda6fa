import Glibc
import Heimdallr
import TestSupport
import Testing

@testable import HeimdallrProxy

@Suite("a secret that a command prints", .timeLimit(.minutes(2)))
struct SecretCommandTests {
    /// A thread of its own blocks, so that the tests beside it go on.
    private func run(
        _ words: [String], environment: [String: String] = ["PATH": "/bin:/usr/bin"],
        within time: Duration = .seconds(10)
    ) async throws -> String {
        var command = SecretCommand(words: words, environment: environment, time: time)
        command.keeper = try Repository.executable()
        return try await offPool { [command] in try command.run().revealed }
    }

    private func fault(_ words: [String], within time: Duration = .seconds(10)) async -> String {
        do { return "no fault: \(try await run(words, within: time))" } catch { return "\(error)" }
    }

    @Test func `the output of a command is its secret, without the line end, and no shell reads its arguments`()
        async throws
    {
        #expect(try await run(["printf", "a b\n"]) == "a b")
        #expect(try await run(["printf", "a\r\n"]) == "a")
        #expect(try await run(["printf", "a\n\n"]) == "a\n")
        #expect(try await run(["/bin/echo", "$(id); x", ""]) == "$(id); x ")
    }

    @Test func `a secret's command sees the environment that it is given and no other, and an empty input`()
        async throws
    {
        let text = try await run(["env"], environment: ["PATH": "/bin:/usr/bin", "ONE": "1"])
        #expect(Set(text.split(separator: "\n")) == ["PATH=/bin:/usr/bin", "ONE=1"])
        #expect(try await run(["sh", "-c", "cat; echo end"]) == "end")
    }

    @Test func `the failure of a command is told without its arguments, its output and its errors`() async {
        #expect(
            await fault(["/nonexistent/program", "hidden"])
                == "the command /nonexistent/program could not be run: No such file or directory")
        #expect(
            await fault(["sh", "-c", "echo hidden; echo hidden >&2; exit 3"])
                == "the command sh failed: it ended with exit code 3")
        #expect(await fault(["sh", "-c", "kill -9 $$"]) == "the command sh failed: signal 9 ended it")
        #expect(await fault(["true"]) == "the command true printed nothing")
        #expect(await fault(["echo"]) == "the command echo printed nothing")
    }

    @Test func `more than 64 KiB of output are refused, and 64 KiB are not`() async throws {
        #expect(try await run(["head", "-c", "65536", "/dev/zero"]).utf8.count == 65536)
        #expect(await fault(["head", "-c", "65537", "/dev/zero"]) == "the command head printed more than 64 KiB")
        let begin = ContinuousClock.now
        #expect(await fault(["cat", "/dev/zero"]) == "the command cat printed more than 64 KiB")
        #expect(ContinuousClock.now - begin < .seconds(5))
    }

    /// A sleep that no other process on this machine is in.
    private func sleep(_ number: Int) -> String { "sleep 6\(number).\(getpid())" }

    private func isRunning(_ command: String) async throws -> Bool {
        let pattern = "^" + command.replacing(".", with: "[.]")
        do { return try await !run(["pgrep", "-f", pattern]).isEmpty } catch { return false }
    }

    @Test func `a command that hangs is ended at its limit with all that it started`() async throws {
        let begin = ContinuousClock.now
        #expect(
            await fault(["sh", "-c", "trap '' TERM; \(sleep(1)) & \(sleep(1)); echo x"], within: .seconds(1))
                == "the command sh did not end in 1 s, and was killed")
        #expect(ContinuousClock.now - begin >= .seconds(1))
        // Both are gone.
        #expect(try await !isRunning(sleep(1)))
    }

    @Test(arguments: [
        // Another session.
        (3, "setsid SLEEP & wait"),
        // A daemon: its parent and its grandparent have ended.
        (4, "(setsid sh -c 'SLEEP & exit 0' &) ; sleep 30"),
        // One that starts others while they are killed, and ignores whatever it can.
        (5, "setsid sh -c 'trap \"\" TERM HUP INT; while :; do setsid SLEEP & SLEEP; done' & wait"),
    ])
    func `neither a session of its own nor a dead parent saves the children of a command`(number: Int, script: String)
        async throws
    {
        let command = sleep(number)
        #expect(
            await fault(["sh", "-c", script.replacing("SLEEP", with: command)], within: .seconds(1))
                .contains("did not end in 1 s"))
        #expect(try await !isRunning(command))
    }

    @Test func `a command that prints too much is ended with all that it started`() async throws {
        let command = sleep(9)
        #expect(await fault(["sh", "-c", "setsid \(command) & cat /dev/zero"]).contains("more than 64 KiB"))
        #expect(try await !isRunning(command))
    }

    @Test func `a daemon that a good command leaves stays, and so does everybody else`() async throws {
        let command = sleep(2)
        let other = try ChildProcess(["sleep", "300"])
        // The command ends once its daemon has a session.
        let ready = try TemporaryDirectory().path(of: "ready")
        let daemon = "setsid sh -c ': >\(ready); exec \(command)' >/dev/null &"
        #expect(
            try await run([
                "sh", "-c", "mkdir -p $(dirname \(ready)); \(daemon) until [ -e \(ready) ]; do :; done; echo here",
            ]) == "here")
        try await eventually("it runs") { try await isRunning(command) }
        #expect(await fault(["sh", "-c", "yes"]).contains("more than 64 KiB"))
        #expect(try await isRunning(command))
        #expect(other.ending == nil)
        try await ChildProcess.output(of: ["pkill", "-f", "^" + command.replacing(".", with: "[.]")])
    }

    @Test(arguments: [("echo here", "here"), ("exit 3", nil)])
    func `a child that a command leaves running holds nothing open, and is ended with it`(end: String, output: String?)
        async throws
    {
        let begin = ContinuousClock.now
        let command = "sleep 62.\(getpid())\(end.utf8.count)"
        let words = ["sh", "-c", "\(command) & \(end)"]
        if let output {
            #expect(try await run(words) == output)
        } else {
            #expect(await fault(words).contains("exit code 3"))
        }
        #expect(ContinuousClock.now - begin < .seconds(9))
        #expect(try await !isRunning(command))
    }
}
