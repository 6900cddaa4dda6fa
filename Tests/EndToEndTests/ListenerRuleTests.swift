import TestSupport
import Testing

@Suite("where the proxy may listen", .timeLimit(.minutes(1)))
struct ListenerRuleTests {
    private let origin: RecordingOrigin

    init() throws { origin = try RecordingOrigin() }

    @Test(arguments: ["0.0.0.0:0", "\"[::]:0\""], [true, false])
    func `a listener that other machines reach starts with users or open: true, not without`(
        address: String, isOfUpstream: Bool
    ) async throws {
        let folder = try TemporaryDirectory()
        try folder.write("a-password", to: "alice")
        func start(_ proxy: String) throws -> ChildProcess {
            let listen = isOfUpstream ? "127.0.0.1:0" : address
            let file = try folder.write(
                """
                proxy: {listen: \(listen)\(proxy)}
                upstreams:
                  - {host: api.test, url: "\(origin.url)"\(isOfUpstream ? ", listen: \(address)" : "")}
                """, to: "config.yaml")
            return try ChildProcess([try Repository.executable(), "serve", "--config", file])
        }
        for more in ["", ", open: false", ", users: {}"] {
            let bad = try start(more)
            #expect(try await bad.ended() == .exited(78))
            for words in [
                isOfUpstream ? "config.yaml:3:" : "config.yaml:1:17: proxy.listen: ",
                "is not loopback, so other machines could use the tokens: listen on 127.0.0.1, set `users` under `proxy`, "
                    + "or write `open: true` there if that is meant",
            ] { #expect(bad.errors.contains(words), "\(bad.errors)") }
            #expect(!bad.errors.contains("listening"))
        }
        for (more, status) in [(", open: true", 200), (", users: {alice: {file: alice}}", 407)] {
            let good = try start(more)
            let index = isOfUpstream ? 1 : 0
            let port = try await eventually("it listens") { () -> UInt16? in
                if good.ending != nil { throw TestFailure(good.transcript) }
                let lines = good.errors.split(separator: "\n").filter { $0.contains("listening") }
                guard lines.count > index else { return nil }
                return lines[index].split(separator: ":").last.flatMap { UInt16($0) }
            }
            let head =
                isOfUpstream ? "GET /x HTTP/1.1\r\nHost: 127.0.0.1" : "GET http://api.test/x HTTP/1.1\r\nHost: api.test"
            // The test's client speaks IPv4.
            if address.contains("[") { continue }
            #expect(try await RawClient.exchange(port: port, head + "\r\n\r\n").status == status)
        }
    }

    @Test(arguments: [
        (
            "{listen: \"127.0.0.1:PORT\"}", "listen: \"127.0.0.1:PORT\"",
            "is taken by 127.0.0.1:PORT in line 1: write another port"
        ),
        (
            "{listen: \"unix:/tmp/h.sock\"}", "listen: \"unix:/tmp/h.sock\"",
            "is taken by unix:/tmp/h.sock in line 1: write another path"
        ),
        ("{listen: h.sock}", "methods: [GET]", "proxy.listen: write host:port, such as 127.0.0.1:8080 or [::1]:8080"),
        ("{listen: \"unix:h.sock\"}", "methods: [GET]", "proxy.listen: write unix: and an absolute path"),
        (
            "{listen: {unix: /tmp/h.sock, mode: 0999}}", "methods: [GET]",
            "proxy.listen.mode: write permissions in octal"
        ),
        ("{}", "callers: {uids: [0]}", "`uids` are known on Unix sockets only: add one, such as unix:/run/"),
    ])
    func `a listener that can't be is an error that says what to do`(proxy: String, upstream: String, message: String)
        async throws
    {
        let port = "\(try freePort())"
        let folder = try TemporaryDirectory()
        let file = try folder.write(
            "proxy: \(proxy)\nupstreams:\n  - {host: api.test, \(upstream)}\n".replacing("PORT", with: port),
            to: "config.yaml")
        let run = try await RunningProxy.run(["serve", "--config", file])
        #expect(run.ending == .exited(78), "\(run.transcript)")
        #expect(run.errors.contains(message.replacing("PORT", with: port)), "\(run.errors)")
    }

    @Test func `an upstream that leads back to the proxy is refused at start`() async throws {
        let port = try freePort()
        for host in ["127.0.0.1", "localhost"] {
            await #expect(throws: TestFailure.self) {
                _ = try await RunningProxy(
                    ProxyConfiguration(
                        listen: port, tokenEndpoint: "http://127.0.0.1:1/",
                        upstreams: ProxyConfiguration.upstream(url: "http://\(host):\(port)")))
            }
        }
    }
}
