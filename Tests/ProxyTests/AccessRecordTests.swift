import Proxy
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
}
