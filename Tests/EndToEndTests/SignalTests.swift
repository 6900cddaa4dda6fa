import Foundation
import TestSupport
import Testing

@Suite("signals that mean nothing make a log line, whatever the proxy is doing", .timeLimit(.minutes(2)))
struct SignalTests {
    private static let stray: [(number: Int32, name: String)] = [(SIGUSR1, "SIGUSR1"), (SIGUSR2, "SIGUSR2")]

    private func expectLines(_ log: @escaping @Sendable () -> String) async throws {
        for (_, name) in Self.stray { try await eventually("a line for \(name)") { log().contains("signal=\(name) ") } }
    }

    /// Whether the process has its own handler for it (proc(5)).
    private func catches(_ number: Int32, _ pid: Int32) -> Bool {
        guard let status = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("SigCgt:") }),
            let mask = line.split(separator: "\t").last.flatMap({ UInt64($0, radix: 16) })
        else { return false }
        return mask & (1 << UInt64(number - 1)) != 0
    }

    @Test func `a signal without a meaning makes a log line while the proxy starts`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let directory = try TemporaryDirectory()
        try directory.write(clientSecret, to: "secret")
        let text = ProxyConfiguration(
            tokenEndpoint: endpoint.url, upstreams: ProxyConfiguration.upstream(url: endpoint.url)
        ).text
        let file = try directory.write(text.replacing("FOLDER", with: directory.path), to: "config.yaml")
        for _ in 0..<5 {
            let proxy = try ChildProcess([try Repository.executable(), "serve", "--config", file])
            // As early as a signal can come without ending any program.
            while !(Self.stray.map(\.number) + [SIGHUP]).allSatisfy({ catches($0, proxy.pid) }) {
                if proxy.ending != nil { throw TestFailure(proxy.transcript) }
            }
            for (number, _) in Self.stray { proxy.signal(number) }
            // That one has it read its configuration again, once it runs.
            proxy.signal(SIGHUP)
            try await expectLines { proxy.errors }
            try await eventually("it listens") { proxy.errors.contains("listening") }
            try await eventually("it has read again") { proxy.errors.contains("was read again and is in use") }
            #expect(try await proxy.stop() == .exited(0), "\(proxy.transcript)")
        }
    }

    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `as the first process of a container the proxy reaps every child, and knows how its commands end`()
        async throws
    {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            to: origin,
            upstream:
                "inject: [{header: Authorization, scheme: Bearer}, {header: X-Key, value: {command: [echo, the-key]}}]",
            under: ["unshare", "--pid", "--fork", "--kill-child"])
        // The wrapper's only child is the first process of its namespace.
        func children(of process: Int32) -> [Int32] {
            let text = try? String(contentsOfFile: "/proc/\(process)/task/\(process)/children", encoding: .utf8)
            return (text ?? "").split(separator: " ").compactMap { Int32($0) }
        }
        let first = try #require(children(of: proxy.process.pid).first)
        for round in 1...3 {
            // Its shell ends first, so the other process becomes a child of the proxy.
            let orphan = try await ChildProcess.run(
                ["nsenter", "--target", "\(first)", "--pid", "sh", "-c", "setsid sleep 0.05 >/dev/null 2>&1 & exit 0"])
            #expect(orphan.ending == .exited(0), "\(orphan.transcript)")
            #expect(try await proxy.get("http://api.test/").status == 200)
            #expect(origin.requests.count == round)
        }
        try await eventually("no child is left") {
            let text = try? String(contentsOfFile: "/proc/\(first)/task/\(first)/children", encoding: .utf8)
            return text?.isEmpty == true
        }
    }

    @Test func `a signal without a meaning makes a log line while the proxy drains`() async throws {
        let gate = Gate()
        let origin = try RecordingOrigin { exchange in
            gate.wait()
            try exchange.respond(body: "whole")
        }
        let proxy = try await RunningProxy(to: origin)
        let client = try await RawClient.connect(port: proxy.port)
        try await client.send("GET http://api.test/x HTTP/1.1\r\nHost: api.test\r\n\r\n")
        try await eventually("it is under way") { origin.requests.count == 1 }
        proxy.process.signal(SIGTERM)
        try await eventually("it accepts nobody") { (try? await RawClient.connect(port: proxy.port)) == nil }
        for (number, _) in Self.stray { proxy.process.signal(number) }
        proxy.process.signal(SIGHUP)
        try await expectLines { proxy.log }
        #expect(proxy.process.ending == nil)
        gate.open()
        #expect(try await client.response().text == "whole")
        #expect(try await proxy.process.ended() == .exited(0), "\(proxy.process.transcript)")
    }
}
