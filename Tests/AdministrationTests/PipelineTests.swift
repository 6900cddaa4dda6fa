import Synchronization
import TestSupport
import Testing

@testable import Administration

@Suite("requests that come before the last one is answered", .serialized, .timeLimit(.minutes(2)))
struct PipelineTests {
    @Test(arguments: ["/metrics", "/status", "/livez"])
    func `probes don't wait for the many requests of those who read no answers`(path: String) async throws {
        let admin = try await AdministeredProxy()
        try await admin.ready()
        let many = String(repeating: "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 100)
        var clients: [RawClient] = []
        for _ in 0..<200 {
            let client = try await RawClient.connect(port: admin.adminPort, receiveBuffer: 4096)
            try? await client.send(many)
            clients.append(client)
        }
        for _ in 0..<20 {
            let begin = ContinuousClock.now
            #expect(try await admin.get("/livez").status == 200)
            #expect(begin.duration(to: .now) < .seconds(2))
        }
        withExtendedLifetime(clients) {}
    }

    @Test func `each pipelined request is answered, in turn, however its bytes come`() async throws {
        let admin = try await AdministeredProxy()
        let turns = [
            ("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
            ("POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 7\r\n\r\na\nb\n\ncd", 404),
            (
                "POST /nothing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n\r\n\n\r\n0\r\n\r\n",
                404
            ),
        ]
        let all = Array(repeating: turns, count: 8).flatMap { $0 }
        let bytes = Array(all.map(\.0).joined().utf8)
        let client = try await RawClient.connect(port: admin.adminPort)
        let whole = Task { try await client.send(bytes) }
        for (request, status) in all { #expect(try await client.response().status == status, "\(request)") }
        try await whole.value
        let slow = try await RawClient.connect(port: admin.adminPort)
        for byte in turns.map(\.0).joined().utf8 { try await slow.send([byte]) }
        for (request, status) in turns { #expect(try await slow.response().status == status, "\(request)") }
        let ending = try await RawClient.connect(port: admin.adminPort)
        try await ending.send(turns.map(\.0).joined())
        ending.finishSending()
        for (request, status) in turns { #expect(try await ending.response().status == status, "\(request)") }
    }

    @Test func `a probe keeps its place for nothing that follows it`() async throws {
        let admin = try await AdministeredProxy(TokenEndpoint([.silence]))
        var clients: [RawClient] = []
        for _ in 0..<300 {
            let client = try await RawClient.connect(unix: admin.socket)
            try? await client.send(
                "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /token/api HTTP/1.1\r\nHost: localhost\r\n\r\n")
            clients.append(client)
        }
        for _ in 0..<10 {
            let probe = try await RawClient.connect(unix: admin.socket)
            try await probe.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await probe.response(within: .seconds(5)).status == 200)
        }
        withExtendedLifetime(clients) {}
    }

    @Test func `scrapes that wait share a rendering, and it began after they asked`() async {
        let counts = Counts()
        let rendering = SharedRendering<Int>(distance: .milliseconds(20))
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<500 {
                group.addTask {
                    let mine = counts.change { $0.asked += 1 }.asked
                    let seen = await rendering.page {
                        let begin = counts.change {
                            $0.now += 1
                            $0.renderings += 1
                        }
                        #expect(begin.now == 1)
                        await Task.yield()
                        counts.change { $0.now -= 1 }
                        return begin.asked
                    }
                    #expect(seen >= mine)
                }
            }
        }
        #expect(counts.change { _ in }.renderings < 100)
        // A late caller is served, too, perhaps by the rendering of the callers before.
        _ = await rendering.page { -1 }
    }

    private final class Counts: Sendable {
        struct State {
            var asked = 0
            var now = 0
            var renderings = 0
        }

        private let state = Mutex(State())

        @discardableResult
        func change(_ body: (inout State) -> Void) -> State {
            state.withLock { state in
                body(&state)
                return state
            }
        }
    }
}
