import Foundation
import TestSupport
import Testing

@Suite("the command line", .timeLimit(.minutes(2)))
struct CommandLineTests {
    @Test func `--help explains itself to a stranger`() async throws {
        let help = try await RunningProxy.run(["--help"])
        #expect(help.ending == .exited(0))
        for word in [
            "http_proxy=", "serve", "demo", "check", "--config", "--version", "OAuth", "78", "HEIMDALLR_UPSTREAM",
            "CONNECT",
        ] {
            #expect(help.output.contains(word), "\(word)")
        }
        #expect(help.errors.isEmpty)
    }

    @Test func `--version says name and number`() async throws {
        let version = try await RunningProxy.run(["--version"])
        #expect(version.ending == .exited(0))
        #expect(version.output.wholeMatch(of: /heimdallr-proxy \d+\.\d+\.\d+\n/) != nil)
    }

    @Test(arguments: [
        ["--no-such-option"], ["no-such-verb"], ["check", "--config"], ["demo", "extra"], ["serve", "extra"],
    ])
    func `wrong usage is exit code 2`(arguments: [String]) async throws {
        let run = try await RunningProxy.run(arguments)
        #expect(run.ending == .exited(2))
        #expect(run.output.isEmpty)
        #expect(!run.errors.isEmpty)
    }

    @Test(arguments: ["serve", "check"])
    func `a wrong configuration is exit code 78, with every error, its place and what to write`(verb: String)
        async throws
    {
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            """
            proxy:
              lisen: 127.0.0.1:0
            clients:
              api:
                token_endpoint: http://127.0.0.1:1/token
                client_id: x
            upstreams:
              - host: api.test
                client: apo
            """, to: "wrong.yaml")
        let run = try await RunningProxy.run([verb, "--config", file])
        #expect(run.ending == .exited(78))
        #expect(run.errors.contains("wrong.yaml:2:3"))
        #expect(run.errors.contains("listen"))
        #expect(run.errors.contains("allow_plaintext"))
        #expect(run.errors.contains("wrong.yaml:9:"))
    }

    @Test func `a configuration that is not there is exit code 78`() async throws {
        let run = try await RunningProxy.run(["serve", "--config", "/nowhere/config.yaml"])
        #expect(run.ending == .exited(78))
        #expect(run.errors.contains("/nowhere/config.yaml"))
    }

    @Test func `check prints the resolved routes and starts nothing`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            """
            clients:
              billing: {token_endpoint: "https://idp.example.com/token", client_id: x, client_secret: {env: TEST_SECRET}}
            upstreams:
              - {host: billing.example.com, client: billing, paths: [/v1/]}
              - {host: "*.plain.example.com"}
            """, to: "config.yaml")
        let run = try await RunningProxy.run(["check", "--config", file], environment: ["TEST_SECRET": clientSecret])
        #expect(run.ending == .exited(0))
        for word in ["billing.example.com", "/v1", "billing", "*.plain.example.com"] {
            #expect(run.output.contains(word))
        }
        #expect(!(run.output + run.errors).contains(clientSecret))
    }

    @Test func `check warns of a literal secret without showing it`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            """
            clients:
              api: {token_endpoint: "https://idp.example.com/token", client_id: x, client_secret: \(clientSecret)}
            upstreams:
              - {host: api.example.com, client: api}
            """, to: "config.yaml")
        let run = try await RunningProxy.run(["check", "--config", file])
        #expect(run.ending == .exited(0))
        #expect((run.output + run.errors).contains("warning"))
        #expect(!(run.output + run.errors).contains(clientSecret))
    }

    @Test func `the repository's own configuration is valid`() async throws {
        let run = try await RunningProxy.run(["check", "--config", Repository.root + "/config.yaml"])
        #expect(run.ending == .exited(0))
        for word in ["127.0.0.1:8080", "api.playground.test", "client playground"] {
            #expect(run.output.contains(word))
        }
    }

    @Test func `the README's configuration is valid`() async throws {
        let readme = try String(contentsOfFile: Repository.root + "/README.md", encoding: .utf8)
        let directory = try TemporaryDirectory()
        let secret = try directory.write(clientSecret, to: "secret")
        let blocks = readme.components(separatedBy: "```yaml\n").dropFirst().map {
            $0.components(separatedBy: "```")[0]
        }
        let whole = try #require(blocks.first { $0.hasPrefix("clients:") })
        let client = try #require(whole.components(separatedBy: "\nupstreams:").first)
        let texts = blocks.map { $0.trimmingPrefix(/\s+/).hasPrefix("upstreams:") ? client + "\n" + $0.unindented : $0 }
        #expect(!texts.isEmpty)
        for text in texts {
            let file = try directory.write(text.replacing("/run/secrets/items", with: secret), to: "config.yaml")
            let run = try await RunningProxy.run(["check", "--config", file])
            #expect(run.ending == .exited(0), "\(text)\n\(run.transcript)")
        }
    }

    @Test func `demo shows the same request without and with the proxy, and ends`() async throws {
        let run = try await RunningProxy.run(["demo"])
        #expect(run.ending == .exited(0))
        #expect(run.output.contains("401"))
        #expect(run.output.contains("200"))
    }

    @Test func `the playground's curl line, copied, shows a token arrive`() async throws {
        // The repository's own file, but for the port.
        var configuration = try String(contentsOfFile: Repository.root + "/config.yaml", encoding: .utf8)
        configuration.replace("127.0.0.1:8080", with: "127.0.0.1:0")
        configuration.replace("listen: 127.0.0.1:8081", with: "listen: 127.0.0.1:0")
        let proxy = try await RunningProxy(configuration)
        let line = try await eventually("a curl line") {
            (proxy.log + "\n" + proxy.process.output).split(separator: "\n").first { $0.contains("curl ") }
        }
        let start = line.range(of: "curl ")?.lowerBound ?? line.startIndex
        let answer = try await ChildProcess.output(of: ["sh", "-c", String(line[start...])])
        #expect(answer.contains("Bearer") || answer.contains("token"))
        #expect(!answer.contains("invalid_token"))
        #expect(!answer.contains("unauthorized"))
    }

    @Test func `one upstream in the environment needs no file`() async throws {
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint.plain()
        let port = try freePort()
        let directory = try TemporaryDirectory()
        let process = try ChildProcess(
            [try Repository.executable()],
            environment: [
                "HEIMDALLR_UPSTREAM": origin.url, "HEIMDALLR_TOKEN_ENDPOINT": endpoint.url, "HEIMDALLR_CLIENT_ID": "x",
                "HEIMDALLR_CLIENT_SECRET": clientSecret, "HEIMDALLR_ALLOW_PLAINTEXT": "true",
                "HEIMDALLR_LISTEN": "127.0.0.1:\(port)",
            ], directory: directory.path)
        try await eventually("it listens or ends") { process.errors.contains("listening") || process.ending != nil }
        #expect(process.ending == nil, "\(process.transcript)")
    }
}

extension String {
    /// Without the indentation that all lines share with the first.
    fileprivate var unindented: String {
        let indentation = String(prefix { $0 == " " })
        return split(separator: "\n", omittingEmptySubsequences: false)
            .map { String($0.trimmingPrefix(indentation)) }.joined(separator: "\n")
    }
}
