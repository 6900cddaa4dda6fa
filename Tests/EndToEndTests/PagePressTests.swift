import TestSupport
import Testing

/// By `Fixtures/sign_in.py` in a real Chromium.
@Suite("buttons of the page while events change it", .timeLimit(.minutes(3)))
struct PagePressTests {
    @Test func `of 21 presses none meets a button that an event has replaced`() async throws {
        let endpoint = try TokenEndpoint { _, number in .token("\(token)-\(number)", expiresIn: "4") }
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let names = ["billing", "calendar", "reports", "mail", "archive"]
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                admin: "", clients: names.map { ProxyConfiguration.client($0, tokenEndpoint: endpoint.url) },
                upstreams: names.map {
                    "  - {host: \($0).test, url: \"\(origin.url)\", client: \($0), allow_plaintext: true}"
                }))
        let admin = "http://127.0.0.1:\(try await proxy.administration().port)"
        // Requests and further clients change the page at the same time.
        let pressing = try Person().does(["press", admin] + names.prefix(3))
        while pressing.ending == nil {
            for name in names { #expect(try await proxy.get("http://\(name).test/").status == 200) }
            // Time itself: the pace at which the page changes.
            try await Task.sleep(for: .milliseconds(50))
        }
        #expect(pressing.ending == .exited(0), "\(pressing.transcript)")
        let lines = pressing.output.split(separator: "\n")
        #expect(lines.count { $0.hasPrefix("asked \(admin)/refresh/") } == 21, "\(pressing.transcript)")
        #expect(lines.filter { $0.hasPrefix("complaint ") } == [])
    }
}
