import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("the configuration is read again while the proxy runs", .timeLimit(.minutes(5)))
struct ReloadTests {
    /// Clients that ask without a pause.
    private final class Load: Sendable {
        let port: UInt16
        let stop = Atomic(false)
        let count = Atomic(0)
        let failures = Mutex<[String]>([])

        init(port: UInt16) { self.port = port }

        func run(keeping keeps: Bool) async throws {
            var client = try await RawClient.connect(port: port)
            while !stop.load(ordering: .relaxed) {
                do {
                    if !keeps { client = try await RawClient.connect(port: port) }
                    try await client.send("GET http://api.test/x HTTP/1.1\r\nHost: api.test\r\n\r\n")
                    let answer = try await client.response()
                    if answer.status != 200 { failures.withLock { $0.append("\(answer.status) \(answer.text)") } }
                } catch {
                    failures.withLock { $0.append("\(keeps): \(error)") }
                    client = try await RawClient.connect(port: port)
                }
                count.add(1, ordering: .relaxed)
            }
        }
    }

    private static func other(_ url: String, client: String? = "api", more: String = "") -> String {
        """
          - host: other.test
            url: \(url)
            \(client.map { "client: \($0)" } ?? "")
            allow_plaintext: true
        \(more.indented(4))
        """
    }

    @Test func `a new upstream works, one that is gone gets 403, and what did not change keeps its token`() async throws
    {
        let running = try await ReloadedProxy()
        #expect(try await running.status() == 200)
        #expect(try await running.status("http://other.test/") == 403)
        try running.write(upstreams: Self.other(running.origin.url))
        #expect(try await running.status("http://other.test/") == 403, "not before it is asked for")
        let said = try await running.reload()
        #expect(said.output.contains("The configuration is in use: 2 upstreams; clients: 1 kept, 0 new, 0 removed."))
        #expect(try await running.status("http://other.test/") == 200)
        #expect(running.origin.requests.last?.field("Authorization") == "Bearer \(TokenEndpoint.plainToken)")
        try running.write()
        try await running.reload()
        #expect(try await running.status("http://other.test/") == 403)
        #expect(try await running.status() == 200)
        #expect(running.endpoint.requests.count == 1, "one token for all of it")
        let metrics = try await running.metrics()
        #expect(metrics.contains(#"heimdallr_requests_total{upstream="api.test",code="200"} 2"#), "\(metrics)")
        #expect(metrics.contains(#"heimdallr_configuration_reloads_total{result="taken"} 2"#))
        #expect(metrics.contains("heimdallr_configuration_good 1"))
    }

    @Test func `SIGHUP reloads the configuration as the command does`() async throws {
        let running = try await ReloadedProxy()
        try running.write(upstreams: Self.other(running.origin.url))
        running.proxy.process.signal(SIGHUP)
        try await eventually("it is taken up") {
            running.proxy.log.contains("the configuration was read again and is in use")
        }
        #expect(try await running.status("http://other.test/") == 200)
        try running.write(text: "proxy: {listen: [127.0.0.1:0]}\nupstream: []\n")
        running.proxy.process.signal(SIGHUP)
        try await eventually("it is refused") {
            running.proxy.log.contains("the configuration is invalid; the former one stays in use")
        }
        #expect(running.proxy.log.contains("line=2"))
        #expect(try await running.status("http://other.test/") == 200)
    }

    @Test(arguments: [
        ("proxy: [", "config.yaml:"),
        (
            "proxy: {listen: nowhere}\nadmin: {listen: \"127.0.0.1:0\", socket: FOLDER/admin.sock}\n",
            "config.yaml:1:17: "
        ),
        ("admin:\n  listen: \"127.0.0.1:0\"\n  socket: FOLDER/admin.sock\nupstreams:\n\t- x\n", "config.yaml:5:1: "),
    ])
    func `a wrong configuration leaves the one before in use, and is told wherever one looks`(
        text: String, location: String
    )
        async throws
    {
        let running = try await ReloadedProxy()
        let good = try running.proxy.directory.read("config.yaml")
        try running.write(text: text)
        let refused = try await running.reload(expecting: .exited(78))
        #expect(refused.errors.contains("error: ") && refused.errors.contains(location), "\(refused.errors)")
        #expect(refused.output == "")
        #expect(try await running.status() == 200)
        guard text.contains("socket") else { return }
        #expect(refused.errors.contains("the former one stays in use"))
        // The log is written a moment later.
        try await eventually("the log says so") {
            running.proxy.log.contains("the configuration is invalid; the former one stays in use")
        }
        let socket = running.proxy.directory.path + "/admin.sock"
        let status = try await RunningProxy.run(["status", "--socket", socket])
        #expect(status.ending == .exited(3), "\(status.transcript)")
        #expect(status.output.contains(location))
        let json = try await RunningProxy.run(["status", "--json", "--socket", socket, "--exit-zero"])
        #expect(json.output.contains(#""refused": true"#) || json.output.contains(#""refused":true"#))
        #expect(try await running.metrics().contains("heimdallr_configuration_good 0"))
        try running.write(text: good)
        try await running.reload()
        let well = try await RunningProxy.run(["status", "--socket", socket])
        #expect(well.ending == .exited(0), "\(well.transcript)")
    }

    @Test func `a setting that can't change while the proxy runs is refused with its name`() async throws {
        let running = try await ReloadedProxy()
        try running.write(proxy: "threads: 2", more: "log: {format: json}\nplayground: true")
        let refused = try await running.reload(expecting: .exited(78))
        for key in ["proxy.threads", "log.format", "playground"] {
            #expect(refused.errors.contains("\(key) can't change while the proxy runs"), "\(key): \(refused.errors)")
        }
        #expect(try await running.status() == 200)
    }

    @Test func `a changed client gets a new token, and another one keeps its own`() async throws {
        let second = try ReloadedProxy.tokenEndpoint()
        let others = """
            second:
              token_endpoint: \(second.url)
              client_id: second
              client_secret: {file: FOLDER/secret}
              allow_plaintext: true
            """
        let running = try await ReloadedProxy()
        try running.write(clients: others, upstreams: Self.other(running.origin.url, client: "second"))
        try await running.reload()
        #expect(try await running.status() == 200)
        #expect(try await running.status("http://other.test/") == 200)
        #expect(second.requests.count == 1 && running.endpoint.requests.count == 1)
        // Another secret.
        try running.proxy.directory.write("another-secret-1234", to: "other-secret")
        try running.write(
            client: "", clients: others.replacing("FOLDER/secret", with: "FOLDER/other-secret"),
            upstreams: Self.other(running.origin.url, client: "second"))
        try await running.reload()
        #expect(try await running.status("http://other.test/") == 200)
        #expect(second.requests.count == 2, "\(running.proxy.log)")
        #expect(second.requests.last?.field("Authorization") == "Basic " + "second:another-secret-1234".base64)
        #expect(try await running.status() == 200)
        #expect(running.endpoint.requests.count == 1)
        // A change that does not affect the token needs no new token.
        try running.write(
            client: "timeout: 3s\nlabels: {team: a}",
            clients: others.replacing("FOLDER/secret", with: "FOLDER/other-secret"),
            upstreams: Self.other(running.origin.url, client: "second"))
        try await running.reload()
        #expect(try await running.status() == 200)
        #expect(running.endpoint.requests.count == 1 && second.requests.count == 2)
    }

    @Test func `listeners come and go, and one that stays loses nobody`() async throws {
        let running = try await ReloadedProxy()
        let kept = try await RawClient.connect(port: running.proxy.port)
        try await kept.send("GET http://api.test/1 HTTP/1.1\r\nHost: api.test\r\n\r\n")
        #expect(try await kept.response().status == 200)
        try running.write(upstreams: Self.other(running.origin.url, more: "listen: 127.0.0.1:0"))
        let said = try await running.reload()
        let port = try #require(UInt16(said.output.firstMatch(of: /Listening on 127.0.0.1:(\d+)\./)?.1 ?? ""))
        let own = try await RawClient.connect(port: port)
        try await own.send("GET /2 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try await own.response().status == 200)
        #expect(running.origin.requests.last?.line.hasPrefix("GET /2 ") == true)
        try await kept.send("GET http://other.test/3 HTTP/1.1\r\nHost: other.test\r\n\r\n")
        #expect(try await kept.response().status == 200, "by the new rules, on the old connection")
        try running.write()
        let gone = try await running.reload()
        #expect(gone.output.contains("No longer listening on 127.0.0.1:\(port)."))
        #expect(try await own.countToEnd() == 0, "an idle connection ends")
        await #expect(throws: (any Error).self) { _ = try await RawClient.connect(port: port) }
        try await kept.send("GET http://other.test/4 HTTP/1.1\r\nHost: other.test\r\n\r\n")
        #expect(try await kept.response().status == 403)
        try await kept.send("GET http://api.test/5 HTTP/1.1\r\nHost: api.test\r\n\r\n")
        #expect(try await kept.response().status == 200)
    }

    @Test func `a listener that can't be had is refused as a whole`() async throws {
        let taken = try RecordingOrigin()
        let running = try await ReloadedProxy()
        let port = taken.url.split(separator: ":").last ?? ""
        try running.write(
            upstreams: Self.other(running.origin.url) + "\n"
                + Self.other(running.origin.url, more: "listen: 127.0.0.1:\(port)").replacing(
                    "other.test", with: "third.test"))
        let refused = try await running.reload(expecting: .exited(78))
        #expect(refused.errors.contains("can't listen on 127.0.0.1:\(port)"), "\(refused.errors)")
        #expect(try await running.status("http://other.test/") == 403)
    }

    @Test func `a request under way ends by the rules that it began with`() async throws {
        let gate = Gate()
        let slow = try RecordingOrigin { exchange in
            gate.wait()
            try exchange.respond(body: "whole")
        }
        let running = try await ReloadedProxy()
        try running.write(upstreams: Self.other(slow.url))
        try await running.reload()
        let client = try await RawClient.connect(port: running.proxy.port)
        try await client.send("GET http://other.test/x HTTP/1.1\r\nHost: other.test\r\n\r\n")
        try await eventually("it is under way") { slow.requests.count == 1 }
        try running.write()
        try await running.reload()
        #expect(try await running.status("http://other.test/") == 403)
        gate.open()
        #expect(try await client.response().text == "whole")
        let metrics = try await running.metrics()
        #expect(metrics.contains("heimdallr_requests_in_flight 0"), "\(metrics)")
    }

    @Test func `a token request that hangs delays neither reloads nor the end`() async throws {
        let gate = Gate()
        let hanging = try RecordingOrigin { _ in gate.wait() }
        let running = try await ReloadedProxy()
        func text(_ id: String) -> String {
            ReloadedProxy.text(
                hanging, running.origin, proxy: "drain_timeout: 1s", client: "timeout: 1h",
                upstreams: Self.other(running.origin.url, client: nil)
            ).replacing("client_id: end-to-end", with: "client_id: \(id)")
        }
        try running.write(text: text("first"))
        try await running.reload()
        try await eventually("a token request") { hanging.requests.count == 1 }
        // The first one replaces the client, the next one replaces a client that waits for its start.
        for id in ["second", "third"] {
            try running.write(text: text(id))
            try await running.reload()
        }
        #expect(try await running.status("http://other.test/") == 200)
        #expect(try await running.proxy.terminate() == .exited(0))
        gate.open()
    }

    @Test func `no request fails under load, across twenty reloads`() async throws {
        let running = try await ReloadedProxy()
        #expect(try await running.status() == 200)
        let load = Load(port: running.proxy.port)
        let clients = [true, true, false, false].map { keeps in Task { try await load.run(keeping: keeps) } }
        for round in 0..<20 {
            try running.write(
                proxy: "max_connections: \(500 + round)", client: "timeout: \(3 + round)s",
                upstreams: round % 2 == 0 ? Self.other(running.origin.url, more: "listen: 127.0.0.1:0") : "")
            try await running.reload()
        }
        load.stop.store(true, ordering: .relaxed)
        for client in clients { try await client.value }
        #expect(load.failures.withLock { $0 }.isEmpty)
        #expect(load.count.load(ordering: .relaxed) > 100)
        #expect(running.endpoint.requests.count == 1, "the token was kept")
    }

    @Test func `a client that comes back as somebody else gets a token of its own`() async throws {
        let running = try await ReloadedProxy()
        #expect(try await running.status() == 200)
        let without = """
            proxy: {listen: 127.0.0.1:0}
            admin: {listen: "127.0.0.1:0", socket: FOLDER/admin.sock}
            upstreams: []
            """
        try running.write(text: without)
        try await running.reload()
        #expect(try await running.status() == 403)
        let text = ReloadedProxy.text(running.endpoint, running.origin)
        try running.write(text: text)
        try await running.reload()
        #expect(try await running.status() == 200)
        #expect(running.endpoint.requests.count == 1, "the same client has its token still")
        try running.write(text: without)
        try await running.reload()
        try running.write(text: text.replacing("client_id: end-to-end", with: "client_id: somebody-else"))
        try await running.reload()
        #expect(try await running.status() == 200)
        #expect(running.endpoint.requests.count == 2)
    }

    @Test func `connections that idled before idle_timeout became shorter still make room`() async throws {
        let running = try await ReloadedProxy()
        try running.write(proxy: "idle_timeout: 1h\nmax_connections: 1")
        try await running.reload()
        let request = "GET http://api.test/x HTTP/1.1\r\nHost: api.test\r\n\r\n"
        let idle = try await RawClient.connect(port: running.proxy.port)
        try await idle.send(request)
        #expect(try await idle.response().status == 200)
        try running.write(proxy: "idle_timeout: 60s\nmax_connections: 1")
        try await running.reload()
        #expect(try await RawClient.exchange(port: running.proxy.port, request).status == 200)
        #expect(try await idle.readToEnd().isEmpty)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may look into the proxy, which forbids dumps"))
    func `many reloads leave nothing behind`() async throws {
        let running = try await ReloadedProxy()
        func round(_ number: Int) async throws {
            try running.write(
                client: "timeout: \(3 + number % 5)s",
                upstreams: Self.other(running.origin.url, more: "listen: 127.0.0.1:0"))
            try await running.reload()
            #expect(try await running.status() == 200)
            #expect(try await running.status("http://other.test/") == 200)
        }
        @Sendable func descriptors() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/\(running.proxy.process.pid)/fd").count
        }
        let before = try descriptors()
        // Replaced objects are released some seconds later, so memory grows until as many go as come. A leak makes it
        // grow in each stretch.
        var grown: [Int] = []
        repeat {
            let memory = try running.proxy.process.anonymousMemory()
            for number in 0..<100 { try await round(number) }
            grown.append(try running.proxy.process.anonymousMemory() - memory)
        } while grown.last! > 200 << 10 && grown.count < 20
        #expect(grown.last! <= 200 << 10, "\(grown)")
        _ = try await eventually("no more descriptors than before", within: .seconds(30)) {
            try descriptors() <= before + 50 ? true : nil
        }
        #expect(try await running.proxy.terminate() == .exited(0))
    }

    @Test func `a secret that a command prints is used, and its last good value stays`() async throws {
        let running = try await ReloadedProxy()
        // Not run itself: a file that was written a moment ago may still be open in a child of another test.
        try running.proxy.directory.write("cat \"$1\"\n", to: "print.sh")
        let text = ReloadedProxy.text(running.endpoint, running.origin).replacing(
            "{file: FOLDER/secret}", with: "{command: [sh, FOLDER/print.sh, FOLDER/printed], refresh: 1s}")
        try running.proxy.directory.write("printed-one-123\n", to: "printed")
        try running.write(text: text)
        try await running.reload()
        #expect(try await running.status() == 200)
        #expect(
            running.endpoint.requests.last?.field("Authorization") == "Basic " + "end-to-end:printed-one-123".base64)
        try FileManager.default.removeItem(atPath: running.proxy.directory.path(of: "printed"))
        try await eventually("a failure") {
            running.proxy.log.contains("a secret can't be read; the last one stays in use")
        }
        #expect(running.proxy.log.contains("it ended with exit code 1"))
        #expect(!running.proxy.log.contains("printed-one"))
        try running.proxy.directory.write("printed-two-123\n", to: "printed")
        try await eventually("it works again") { running.proxy.log.contains("a secret can be read again") }
        let metrics = try await running.metrics()
        #expect(
            metrics.contains(/heimdallr_secret_command_runs_total\{command="sh",result="failed"\} [1-9]/))
    }
}
