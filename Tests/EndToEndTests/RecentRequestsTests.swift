import Foundation
import TestSupport
import Testing

@Suite("people see the last requests", .timeLimit(.minutes(2)))
struct RecentRequestsTests {
    private let origin: RecordingOrigin

    init() throws { origin = try RecordingOrigin() }

    private func command(_ proxy: RunningProxy, _ arguments: String...) async throws -> ChildProcess {
        let socket = try await proxy.administration().socket
        return try await RunningProxy.run([arguments[0], "--socket", socket] + arguments.dropFirst())
    }

    private func page(_ proxy: RunningProxy, _ path: String) async throws -> String {
        let port = try await proxy.administration().port
        return try await RawClient.exchange(
            port: port, "GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        ).text
    }

    @Test("`requests` shows what each request asked for and got, without its query and without a token")
    func shown() async throws {
        let proxy = try await RunningProxy(to: origin, admin: "")
        #expect(
            try await proxy.get("http://api.test/a?key=geheim", fields: [("User-Agent", "legacy/1.2")]).status == 200)
        #expect(try await proxy.get("http://evil.test/b", fields: [("X-Request-Id", "mine-7")]).status == 403)
        let all = try await command(proxy, "requests")
        #expect(all.ending == .exited(0), "\(all.transcript)")
        let lines = all.output.split(separator: "\n")
        #expect(lines.count == 4, "\(all.output)")
        #expect(lines[0].contains("  200  ") && lines[0].contains("  GET  "))
        #expect(lines[0].contains("/a  client api  legacy/1.2  "))
        #expect(lines[1].contains("  403  ") && lines[1].contains("  GET  evil.test/b  mine-7"))
        #expect(lines[2].hasPrefix("    refused: no-upstream"))
        #expect(lines[3].contains("evil.test"))
        let refused = try await command(proxy, "requests", "--refused", "--json").output
        #expect(refused.split(separator: "\n").count == 1)
        let fields = try JSONSerialization.jsonObject(with: Data(refused.utf8)) as? [String: Any]
        #expect(fields?["host"] as? String == "evil.test")
        #expect(fields?["reason"] as? String == "no-upstream")
        #expect(fields?["status"] as? Int == 403)
        for text in [
            all.output, refused, try await page(proxy, "/requests"), try await page(proxy, "/requests/fragment"),
        ] {
            #expect(text.contains("evil.test") && text.contains("mine-7"))
            #expect(!text.contains("geheim") && !text.contains(TokenEndpoint.plainToken))
        }
    }

    @Test(
        "a request has one ID: in the log, in the answer and among the last requests", arguments: [nil, "traceparent"])
    func identified(field: String?) async throws {
        let proxy = try await RunningProxy(to: origin, admin: "")
        let fields = field.map { [($0, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")] } ?? []
        #expect(try await proxy.get("http://api.test/a", fields: fields).status == 200)
        let refusal = try await proxy.get("http://evil.test/b", fields: fields)
        #expect(refusal.status == 403)
        let lines = try await command(proxy, "requests", "--json").output.split(separator: "\n")
        let ids = try lines.map { line in
            let fields = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try #require(fields?["id"] as? String)
        }
        #expect(ids.count == 2)
        try await eventually("the lines of the log") { ids.allSatisfy { proxy.log.contains("request_id=\($0)") } }
        #expect(refusal.text.contains(ids[1]))
    }

    @Test("`why ID` tells what became of a request, and why it was refused")
    func explained() async throws {
        let proxy = try await RunningProxy(to: origin, admin: "")
        #expect(try await proxy.get("http://evil.test/b", fields: [("X-Request-Id", "mine-7")]).status == 403)
        let why = try await command(proxy, "why", "mine-7")
        #expect(why.ending == .exited(3), "\(why.transcript)")
        #expect(why.output.contains("request      GET evil.test/b\n"))
        #expect(why.output.contains("answer       403 by the proxy itself\n"))
        #expect(why.output.contains("reason       no-upstream\n"))
        let unknown = try await command(proxy, "why", "mine-8")
        #expect(unknown.ending == .exited(1))
        #expect(unknown.errors.contains("No request of that ID"))
    }

    @Test("readers of /events get each request once it has ended")
    func events() async throws {
        let proxy = try await RunningProxy(to: origin, admin: "")
        let reader = try await RawClient.connect(port: proxy.administration().port)
        try await reader.send("GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        // The first look of a reader's second only counts: later requests are told.
        let sending = Task {
            while !Task.isCancelled {
                _ = try? await proxy.get("http://api.test/a")
                try? await Task.sleep(for: .milliseconds(50))
            }
        }
        defer { sending.cancel() }
        #expect(try await !reader.read(until: "event: request\ndata: {").isEmpty)
        #expect(try await reader.read(until: "\n\n").contains("/a"))
    }

    @Test("with admin.requests: false nothing is kept")
    func off() async throws {
        let proxy = try await RunningProxy(to: origin, admin: "requests: false")
        #expect(try await proxy.get("http://api.test/a").status == 200)
        let all = try await command(proxy, "requests")
        #expect(all.ending == .exited(1))
        #expect(all.errors.contains("admin.requests is false"))
        #expect(!(try await page(proxy, "/")).contains("/requests"))
    }
}
