import Proxy
import Reactor
import Synchronization
import TestSupport
import Testing

@Suite("the access log speaks of the request it is about", .grounds)
struct AccessRecordTests {
    private final class Records: Sendable {
        private let state = Mutex<[AccessRecord]>([])
        var all: [AccessRecord] { state.withLock { $0 } }
        func add(_ record: AccessRecord) { state.withLock { $0.append(record) } }
    }

    @Test(arguments: [
        "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n", "nonsense\r\n\r\n",
        "GET http://api.test#x HTTP/1.1\r\nHost: api.test\r\n\r\n",
    ])
    func `one without a path does not borrow the last one's`(second: String) async throws {
        let records = Records()
        var observer = ProxyObserver()
        observer.accessLog = { records.add($0) }
        let ground = try await Ground(observer: observer)
        let client = try await ground.connect()
        let path = "/" + String(repeating: "long", count: 200)
        try await client.send(message("GET", "http://api.test\(path)?secret=1"))
        #expect(try await client.response().status == 200)
        try await client.send(second)
        #expect(try await client.response().status >= 400)
        try await eventually("both records") { records.all.count == 2 }
        #expect(String(decoding: records.all[0].path, as: UTF8.self) == path)
        #expect(records.all[1].path.isEmpty)
        #expect(try await ground.request().status == 200)
    }

    private func ground(_ upstream: String = "", proxy: String = "") async throws -> (Ground, Records) {
        let records = Records()
        var observer = ProxyObserver()
        observer.accessLog = { records.add($0) }
        return (try await Ground(upstream: upstream, proxy: proxy, observer: observer), records)
    }

    private func text(_ bytes: [UInt8]?) -> String { String(decoding: bytes ?? [], as: UTF8.self) }

    @Test func `host is the authority that it went to, not what a field says`() async throws {
        let (ground, records) = try await ground("listen: 127.0.0.1:0")
        _ = try await ground.send("GET http://api.test/ HTTP/1.1\r\nHost: liar.test\r\n\r\n")
        _ = try await ground.send("GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
        _ = try await RawClient.exchange(port: ground.upstreamPort, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _ = try await ground.send("GET http://unknown.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
        try await eventually("the records") { records.all.count == 4 }
        let own = ground.origin.authority
        #expect(records.all.map { text($0.host) } == [own, own, own, "unknown.test"])
    }

    @Test func `a refusal has its reason, every request its peer`() async throws {
        let (ground, records) = try await ground("methods: [GET]")
        let refused = try await ground.request("POST", body: "x")
        #expect(try await ground.request().status == 200)
        try await eventually("the records") { records.all.count == 2 }
        #expect(records.all.map(\.reason) == ["not-covered", nil])
        for record in records.all { #expect(record.address?.description.hasPrefix("127.0.0.1:") == true) }
        #expect(refused.text.contains("\"request_id\":\"\(text(records.all.first?.requestID))\""))
    }

    private static let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    @Test(arguments: [
        (["X-Request-Id: mine-1"], "mine-1"), (["traceparent: \(trace)"], trace),
        (["Traceparent: \(trace)", "x-request-id: mine.2/a+b=="], "mine.2/a+b=="),
        (["X-Request-Id: with blank", "traceparent: \(trace)"], trace),
    ])
    func `a request's id is the program's`(fields: [String], id: String) async throws {
        let (ground, records) = try await ground()
        _ = try await ground.request(fields: fields)
        try await eventually("the record") { records.all.count == 1 }
        #expect(text(records.all.first?.requestID) == id)
        // Passed on as it came.
        #expect(fields.allSatisfy { ground.origin.requests.first?.fields.map(\.description).contains($0) == true })
    }

    @Test(arguments: [
        [], ["X-Request-Id:"], ["X-Request-Id: a b"], ["X-Request-Id: \(String(repeating: "a", count: 129))"],
        ["X-Request-Id: a\"b"], ["X-Request-Id: \u{1b}[0m".replacing("\u{1b}", with: "\u{e9}")],
        ["traceparent: 00-00000000000000000000000000000000-00f067aa0ba902b7-01"],
        ["traceparent: 00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"], ["traceparent: 00-4bf9"],
    ])
    func `else ours, another for each`(fields: [String]) async throws {
        let (ground, records) = try await ground()
        _ = try await ground.request(fields: fields)
        _ = try await ground.request(fields: fields)
        _ = try await ground.send("nonsense\r\n\r\n")
        try await eventually("the records") { records.all.count == 3 }
        let ids = records.all.map { text($0.requestID) }
        #expect(Set(ids).count == 3)
        for (id, number) in zip(ids, 1...) {
            #expect(id.count == 10 && id.hasSuffix("-\(number)"), "\(id)")
        }
        // It is nobody's business but the log's.
        #expect(
            ground.origin.requests.allSatisfy { request in
                !fields.isEmpty || request.values("X-Request-Id").isEmpty
            })
    }
}
