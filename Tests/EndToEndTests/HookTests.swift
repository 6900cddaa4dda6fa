import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("hooks are told when a person is wanted", .timeLimit(.minutes(2)))
struct HookTests {
    private struct Notice: Decodable {
        var event: String
        var client: String
        var login_url: String?
        var reason: String?
    }

    private let client = """
        grant_type: authorization_code
        authorization_endpoint: https://idp.example.com/authorize
        """

    private func proxy(_ hooks: String, environment: [String: String?] = [:]) async throws -> RunningProxy {
        try await RunningProxy(
            to: "http://127.0.0.1:1", client: client, admin: "", more: "hooks:\n\(hooks.indented(2))",
            environment: environment.merging(["XDG_RUNTIME_DIR": nil]) { one, _ in one })
    }

    @Test func `a webhook is posted, again while its server is out of order, and not when it refuses`() async throws {
        let asked = Atomic(0)
        let hook = try RecordingOrigin { exchange in
            _ = try exchange.readBody()
            try exchange.respond(asked.add(1, ordering: .relaxed).oldValue == 0 ? 503 : 204)
        }
        let proxy = try await proxy("webhook: \(hook.url)/told\nallow_plaintext: true")
        let requests = try await eventually("two requests", within: .seconds(20)) {
            hook.requests.count >= 2 && hook.requests.allSatisfy { !$0.body.isEmpty }
                ? hook.requests : nil
        }
        for request in requests {
            #expect(request.line == "POST /told HTTP/1.1")
            #expect(request.field("Content-Type") == "application/json")
            let notice = try JSONDecoder().decode(Notice.self, from: Data(request.body))
            #expect(notice.event == "needs_authentication")
            #expect(notice.client == "api")
            #expect(notice.login_url?.hasPrefix("http://127.0.0.1:") == true)
            #expect(notice.login_url?.hasSuffix("/login/api") == true)
            #expect(!request.text.contains(clientSecret))
        }
        #expect(hook.problems.isEmpty)
        #expect(try await proxy.terminate() == .exited(0))
    }

    @Test func `a hook's command gets the event and none of our secrets, and is no shell`() async throws {
        let folder = try TemporaryDirectory()
        let file = "\(folder.path)/told"
        // No shell interprets the second argument.
        let script = try folder.write(
            "import os, sys\ntext = sys.stdin.read() + repr(sys.argv[1:]) + repr(dict(os.environ))\n"
                + "open(\"\(file).part\", \"w\").write(text)\nos.rename(\"\(file).part\", \"\(file)\")\n", to: "told.py"
        )
        let proxy = try await proxy(
            "command: [\(try Repository.python()), \(script), \"$(touch \(folder.path)/shell); x\", \"\"]",
            environment: ["HEIMDALLR_CLIENT_SECRET": "not-for-hooks-0123456789", "OTHER": "stays"])
        let text = try await eventually("the command's file", within: .seconds(20)) {
            try? String(contentsOfFile: file, encoding: .utf8)
        }
        let line = try #require(text.split(separator: "\n").first)
        let notice = try JSONDecoder().decode(Notice.self, from: Data(line.utf8))
        #expect(notice.event == "needs_authentication")
        #expect(text.contains("'$(touch \(folder.path)/shell); x', ''"))
        #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/shell"))
        #expect(text.contains("'HEIMDALLR_EVENT': 'needs_authentication'"))
        #expect(text.contains("'HEIMDALLR_CLIENT': 'api'"))
        #expect(text.contains("'OTHER': 'stays'"))
        #expect(!text.contains("not-for-hooks"))
        #expect(!text.contains(clientSecret))
        #expect(try await proxy.terminate() == .exited(0))
    }

    @Test func `a hook's command that fails is in the log; one that hangs keeps nothing from ending`() async throws {
        let failing = try await proxy("command: [\"false\"]")
        _ = try await eventually("the failure in the log") {
            failing.log.contains("the hook's command failed") && failing.log.contains("exit code 1") ? true : nil
        }
        let missing = try await proxy("command: [no-such-program-anywhere]")
        _ = try await eventually("the failure in the log") {
            missing.log.contains("the hook's command could not be run") ? true : nil
        }
        let folder = try TemporaryDirectory()
        let file = "\(folder.path)/pid"
        let hanging = try await proxy("command: [/bin/sh, -c, \"echo $$ > \(file); exec sleep 1000\"]")
        let pid = try await eventually("the command runs") {
            (try? String(contentsOfFile: file, encoding: .utf8)).flatMap { Int32($0.trimmingCharacters(in: .newlines)) }
        }
        #expect(try await hanging.terminate() == .exited(0))
        _ = try await eventually("the command is gone") { kill(pid, 0) != 0 ? true : nil }
    }

    /// How the command that left a daemon behind ends: by itself, or with the proxy.
    @Test(arguments: ["exit 0", "exec sleep 1000"], [SIGTERM, SIGKILL])
    func `children of a hook's command end with it, also in a session of their own`(end: String, signal: Int32)
        async throws
    {
        let folder = try TemporaryDirectory()
        let file = "\(folder.path)/pid"
        let daemon = "setsid sh -c 'echo $$ > \(file).part; mv \(file).part \(file); exec sleep 1000' &"
        let proxy = try await proxy(
            "command: [/bin/sh, -c, \"\(daemon) until test -s \(file); do sleep 0.05; done; \(end)\"]")
        let pid = try await eventually("the daemon runs") {
            (try? String(contentsOfFile: file, encoding: .utf8)).flatMap { Int32($0.trimmingCharacters(in: .newlines)) }
        }
        if end == "exit 0" { try await eventually("the daemon is gone") { kill(pid, 0) != 0 } }
        proxy.process.signal(signal)
        try await eventually("the daemon is gone") { kill(pid, 0) != 0 }
        #expect(!proxy.log.contains("the hook's command") || end != "exit 0", "\(proxy.log)")
    }
}
