import ArgumentParser
import Configuration
import Foundation
import TestSupport
import Testing

@testable import HeimdallrProxy

@Suite struct CommandLineTests {
    private func parsingError(_ arguments: [String]) -> (any Error)? {
        do {
            _ = try HeimdallrProxyCommand.parseAsRoot(arguments)
            return nil
        } catch {
            return error
        }
    }

    @Test func `serve is what happens without a verb`() throws {
        let command = try #require(try HeimdallrProxyCommand.parseAsRoot(["--config", "x.yaml"]) as? ServeCommand)
        #expect(command.options.config == "x.yaml")
        #expect(try HeimdallrProxyCommand.parseAsRoot(["serve", "-c", "y.yaml"]) is ServeCommand)
        #expect(try HeimdallrProxyCommand.parseAsRoot(["check"]) is CheckCommand)
        #expect(try HeimdallrProxyCommand.parseAsRoot(["demo"]) is DemoCommand)
    }

    @Test(arguments: [["--nope"], ["serve", "extra"], ["chekc"], ["--config"], ["demo", "--config", "x"]])
    func `wrong usage is exit code 2`(arguments: [String]) throws {
        let error = try #require(parsingError(arguments))
        #expect(ExitStatus(for: error) == .usage)
    }

    @Test func `why answers for a method and a whole http URL, and says what to write where it is given another`()
        throws
    {
        for (words, advice) in [
            (["CONNECT", "a.test:443"], "heimdallr-proxy check"), (["GET", "a.test"], "why GET http://a.test"),
            (["http://a.test/", "GET"], "why GET http://a.test/"),
        ] {
            let error = try #require(parsingError(["why"] + words))
            #expect(ExitStatus(for: error) == .usage)
            #expect(HeimdallrProxyCommand.fullMessage(for: error).contains(advice), "\(words)")
        }
        #expect(parsingError(["why", "GET", "http://a.test/"]) == nil)
    }

    @Test func `the playground's command is shown where it works, with a user where one is wanted`() throws {
        func settings(_ text: String) throws -> Configuration {
            try .parse(yaml: text, file: "c.yaml", environment: ["P": "x"]).0
        }
        let upstream =
            "upstreams: [{host: api.playground.test, url: \"http://127.0.0.1:7\", allow_plaintext: true}]\n"
        let plain = try settings("playground: true\n" + upstream)
        #expect(PlaygroundHint.leadsThere(plain, api: "127.0.0.1:7"))
        #expect(!PlaygroundHint.leadsThere(plain, api: "127.0.0.1:8"))
        #expect(!PlaygroundHint.leadsThere(try settings("upstreams: [{host: b.test}]"), api: "127.0.0.1:7"))
        #expect(
            PlaygroundHint.command(proxy: "127.0.0.1:8080")
                == "curl -x http://127.0.0.1:8080 http://api.playground.test/hello")
        let users = try settings("proxy: {users: {alice: {env: P}}}\n" + upstream)
        #expect(
            PlaygroundHint.command(proxy: "h:1", users: users.proxy.users.keys).contains(
                " --proxy-user alice:PASSWORD "))
    }

    @Test(arguments: [["--help"], ["help"], ["check", "--help"], ["--version"]])
    func `help and version are exit code 0`(arguments: [String]) throws {
        let command = try? HeimdallrProxyCommand.parseAsRoot(arguments)
        var error = parsingError(arguments)
        if var command, error == nil {
            do { try command.run() } catch let thrown { error = thrown }
        }
        #expect(ExitStatus(for: try #require(error)) == .success)
    }

    @Test func `an error of ours keeps its exit code, any other is 1`() {
        struct SomethingElse: Error {}
        #expect(ExitStatus(for: ExitStatus.badConfiguration.error) == .badConfiguration)
        #expect(ExitStatus(for: ExitStatus.failure.error) == .failure)
        #expect(ExitStatus(for: SomethingElse()) == .failure)
    }

    @Test func `help names every verb, the exit codes and the way without a file`() {
        let help = HeimdallrProxyCommand.helpMessage()
        for word in ["serve", "check", "demo", "--version", "78", "HEIMDALLR_UPSTREAM", "http_proxy=", "CONNECT"] {
            #expect(help.contains(word), "\(word)")
        }
    }
}

@Suite struct ConfigurationSourceTests {
    @Test func `a named file wins over config.yaml, which wins over the environment`() throws {
        let environment = ["HEIMDALLR_UPSTREAM": "https://api.example.com"]
        func choose(_ named: String?, _ environment: [String: String], present: Bool) throws -> ConfigurationSource {
            try ConfigurationSource.choose(named: named, environment: environment) { $0 == "config.yaml" && present }
        }
        #expect(try choose("x.yaml", environment, present: true) == .file("x.yaml"))
        #expect(try choose(nil, environment, present: true) == .file("config.yaml"))
        #expect(try choose(nil, environment, present: false) == .environment)
    }

    @Test func `with nothing at all the usage error says what to do`() throws {
        let error = try #require(throws: ValidationError.self) {
            try ConfigurationSource.choose(named: nil, environment: [:]) { _ in false }
        }
        #expect(ExitStatus(for: error) == .usage)
        for word in ["heimdallr-proxy demo", "--config", "HEIMDALLR_UPSTREAM"] {
            #expect(error.message.contains(word), "\(word)")
        }
    }

    @Test func `a wrong configuration is exit code 78`() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).yaml")
        try Data("prxoy: {}\n".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let error = try #require(throws: (any Error).self) {
            try ConfigurationSource.file(file.path).load(environment: [:])
        }
        #expect(ExitStatus(for: error) == .badConfiguration)
    }

    @Test func `the example of the repository is good, and check shows where it leads`() throws {
        let source = ConfigurationSource.file(Repository.root + "/config.yaml")
        #expect(source.wantsPlayground)
        var environment: [String: String] = [:]
        PlaygroundVariables.addPlaceholders(to: &environment)
        let settings = try source.load(environment: environment)
        #expect(settings.playground)
        let report = CheckCommand.report(settings, source: source)
        #expect(report.contains("127.0.0.1:8080"))
        #expect(report.contains("api.playground.test"))
        #expect(report.contains("client playground"))
        for secret in environment where secret.key == PlaygroundVariables.clientSecret {
            #expect(!report.contains(secret.value))
        }
    }
}

@Suite struct DemoAnswerTests {
    @Test func `an answer shows its status, its telling fields and its body`() throws {
        let text = "HTTP/1.1 401 Unauthorized\r\nDate: x\r\nWWW-Authenticate: Bearer\r\n\r\n{\n  \"a\": 1\n}\n"
        let answer = try #require(DemoAnswer(Array(text.utf8)))
        #expect(answer.status == 401)
        #expect(answer.shown.contains("HTTP/1.1 401 Unauthorized"))
        #expect(answer.shown.contains("WWW-Authenticate: Bearer"))
        #expect(!answer.shown.contains("Date"))
        #expect(answer.shown.contains("       \"a\": 1"))
    }

    @Test(arguments: ["", "HTTP/1.1 200 OK\r\n", "SSH-2.0\r\n\r\n", "HTTP/1.1 abc\r\n\r\n"])
    func `what is not HTTP is no answer`(text: String) {
        #expect(DemoAnswer(Array(text.utf8)) == nil)
    }

    @Test func `nobody listening is an error that says where`() async {
        await #expect(throws: DemoError.self) {
            _ = try await DemoRequest(connectTo: "127.0.0.1:1", target: "/", host: "x").send()
        }
        await #expect(throws: DemoError.self) {
            _ = try await DemoRequest(connectTo: "nowhere", target: "/", host: "x").send()
        }
    }
}
