import ArgumentParser
import Configuration
import Testing

@testable import HeimdallrProxy

@Suite struct CommandLineTests {
    private func parsingError(_ arguments: [String]) -> (any Error)? {
        do {
            _ = try HeimdallrProxyCommand.parseAsRoot(arguments)
            return nil
        } catch { return error }
    }

    @Test func `serve is what happens without a verb`() throws {
        let command = try #require(try HeimdallrProxyCommand.parseAsRoot(["--config", "x.yaml"]) as? ServeCommand)
        #expect(command.options.config == "x.yaml")
        #expect(try HeimdallrProxyCommand.parseAsRoot(["serve", "-c", "y.yaml"]) is ServeCommand)
        #expect(try HeimdallrProxyCommand.parseAsRoot(["check"]) is CheckCommand)
        #expect(try HeimdallrProxyCommand.parseAsRoot(["demo"]) is DemoCommand)
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
        let upstream = "upstreams: [{host: api.playground.test, url: \"http://127.0.0.1:7\", allow_plaintext: true}]\n"
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

    @Test func `an error of ours keeps its exit code, any other is 1`() {
        struct SomethingElse: Error {}
        #expect(ExitStatus(for: ExitStatus.badConfiguration.error) == .badConfiguration)
        #expect(ExitStatus(for: ExitStatus.failure.error) == .failure)
        #expect(ExitStatus(for: SomethingElse()) == .failure)
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
}

@Suite struct DemoAnswerTests {
    @Test func `an answer shows its status, its telling fields and its body`() throws {
        let text = "HTTP/1.1 401 Unauthorized\r\nDate: x\r\nWWW-Authenticate: Bearer\r\n\r\n{\n  \"a\": 1\n}\n"
        let answer = try #require(AdminClient.Answer(Array(text.utf8)))
        #expect(answer.status == 401)
        let shown = DemoCommand.shown(answer)
        for words in ["HTTP/1.1 401 Unauthorized", "WWW-Authenticate: Bearer", "       \"a\": 1"] {
            #expect(shown.contains(words))
        }
        #expect(!shown.contains("Date"))
    }

    @Test(arguments: ["", "HTTP/1.1 200 OK\r\n", "SSH-2.0\r\n\r\n", "HTTP/1.1 abc\r\n\r\n"])
    func `a text that is not HTTP is no answer`(text: String) { #expect(AdminClient.Answer(Array(text.utf8)) == nil) }

    @Test(arguments: ["127.0.0.1:1", "nowhere"])
    func `a demo without a listener is an error that says where`(authority: String) async {
        await #expect(throws: DemoError.self) { _ = try await DemoCommand.answer(of: authority, to: "/") }
    }
}
