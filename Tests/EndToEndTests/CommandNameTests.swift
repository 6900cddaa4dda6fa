import Glibc
import TestSupport
import Testing

@Suite("a command that there is not", .timeLimit(.minutes(1)))
struct CommandNameTests {
    @Test(arguments: [
        ("stat", "status"), ("stats", "status"), ("state", "status"), ("chek", "check"), ("validate", "check"),
        ("test", "check"), ("run", "serve"), ("start", "serve"), ("server", "serve"), ("tok", "token"),
        ("tokens", "token"), ("signin", "login"), ("sign-in", "login"), ("log-in", "login"), ("signout", "logout"),
        ("log-out", "logout"), ("wy", "why"), ("explain", "why"), ("execute", "exec"), ("env", "exec"),
        ("gen-key", "keygen"), ("STATUS", "status"), ("version", "--version"),
    ])
    func `a command that does not exist gets the one that was meant`(word: String, meant: String) async throws {
        let run = try await RunningProxy.run([word])
        #expect(run.ending == .exited(2))
        #expect(run.errors.contains("there is no command \"\(word)\"; did you mean \"\(meant)\"?"), "\(run.errors)")
    }

    @Test(.enabled(if: getuid() == 0, "mounting wants root"), arguments: ["--version", "check", "health"])
    func `without /proc, where the arguments are read, a mistyped command says so and runs no other`(word: String)
        async throws
    {
        let hidden = #"mount -t tmpfs tmpfs /proc && exec "$@""#
        let run = try await ChildProcess.run(
            ["unshare", "--mount", "sh", "-c", hidden, "sh", try Repository.executable(), word])
        #expect(run.ending == .exited(1))
        #expect(run.errors.contains("/proc is not mounted"), "\(run.transcript)")
    }

    @Test(arguments: [["help", "chek"], ["help", "nosuch"], ["help", "store", "nosuch"]])
    func `a command that does not exist has no help`(words: [String]) async throws {
        let run = try await RunningProxy.run(words)
        #expect(run.ending == .exited(2), "\(run.transcript)")
        #expect(run.output.isEmpty)
        let name = words.dropFirst().joined(separator: " ")
        #expect(run.errors.hasPrefix("error: there is no command \"\(name)\""), "\(run.errors)")
        #expect(run.errors.contains("did you mean \"check\"?") == (words[1] == "chek"))
    }

    @Test func `help guesses subcommands, too`() async throws {
        let run = try await RunningProxy.run(["help", "store", "mvoe"])
        #expect(
            run.errors.hasPrefix("error: there is no command \"store mvoe\"; did you mean \"move\"?"), "\(run.errors)")
    }

    @Test(arguments: [["help"], ["help", "status"], ["help", "store", "move"], ["help", "help"]])
    func `every command that exists has its help`(words: [String]) async throws {
        #expect(try await RunningProxy.run(words).ending == .exited(0))
    }

    @Test(arguments: [
        ["nosuch"], ["--nosuch"], ["serve", "--config", "/nowhere"], ["check", "--config", "/nowhere"],
        ["status", "--socket", "/nowhere"], ["why"], ["why", "CONNECT", "http://a.test/"], ["exec"],
        ["health", "--timeout", "0"], ["health", "--socket", "/nowhere"], ["refresh", "--socket", "/nowhere", "a"],
        ["logout", "--socket", "/nowhere", "a"], ["token", "--socket", "/nowhere", "a"],
        ["login", "--socket", "/nowhere", "a"],
        ["store", "nosuch"], ["store", "status", "--config", "/nowhere"], ["keygen", "--output", "/nowhere/key"],
        ["reload", "--socket", "/nowhere"], ["doctor", "--config", "/nowhere"], ["exec", "--config", "/nowhere", "a"],
    ])
    func `every command's failure begins with error:`(words: [String]) async throws {
        let run = try await RunningProxy.run(words)
        #expect(run.ending != .exited(0))
        #expect(run.errors.hasPrefix("error: "), "\(run.transcript)")
        #expect(!run.errors.contains("Error: "), "\(run.transcript)")
    }

    @Test(arguments: ["xyzzy", "q"])
    func `a word that is near no command gets no guess`(word: String) async throws {
        let run = try await RunningProxy.run([word])
        #expect(run.ending == .exited(2))
        #expect(!run.errors.contains("did you mean"))
        #expect(run.errors.contains("heimdallr-proxy --help"))
    }
}
