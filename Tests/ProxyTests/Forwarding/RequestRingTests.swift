import Reactor
import Reports
import Testing

@testable import Proxy

@Suite("the last requests of a loop")
struct RequestRingTests {
    private func add(_ count: Int, to ring: inout RequestRing, path: String = "/x") {
        for _ in 0..<count {
            var entry = RequestRing.Entry(ended: LoopTime(nanoseconds: 5))
            entry.status = 200
            let id = Array("\(ring.count + 1)".utf8)
            entry.details = RequestRing.Details(Caller(), id: id, Ledger(started: LoopTime(nanoseconds: 0)))
            let (method, host, path, program) = (Array("GET".utf8), Array("api.test".utf8), Array(path.utf8), [UInt8]())
            ring.add(entry, method: method.span, host: host.span, path: path.span, program: program.span)
        }
    }

    private func report(_ ring: RequestRing, after seen: UInt64 = 0) -> RecentRequests {
        var report = RecentRequests()
        ring.add(to: &report, after: seen, LoopTime(nanoseconds: 5))
        return report
    }

    @Test("a loop keeps its last 200 requests, and says how many it no longer has")
    func last() {
        var ring = RequestRing()
        #expect(report(ring).requests.isEmpty)
        add(3, to: &ring)
        #expect(report(ring).requests.map(\.id) == ["1", "2", "3"])
        #expect(report(ring).missed == 0)
        add(RecentRequests.most, to: &ring)
        #expect(report(ring).requests.map(\.id) == (4...203).map(String.init))
        #expect(report(ring).missed == 3)
        #expect(report(ring).counts == [203])
    }

    @Test("a report after an earlier one has the requests since then only")
    func after() {
        var ring = RequestRing()
        add(3, to: &ring)
        #expect(report(ring, after: 2).requests.map(\.id) == ["3"])
        #expect(report(ring, after: 3).requests.isEmpty)
        #expect(report(ring, after: .max).requests.isEmpty, "of a proxy that has started anew")
        add(250, to: &ring)
        #expect(report(ring, after: 3).missed == 50)
        #expect(report(ring, after: 3).requests.count == RecentRequests.most)
    }

    @Test("a long name is cut at its limit, and takes no place of another")
    func cut() throws {
        var ring = RequestRing()
        add(1, to: &ring, path: "/" + String(repeating: "a", count: 5000))
        add(1, to: &ring)
        let requests = report(ring).requests
        #expect(requests.map(\.method) == ["GET", "GET"])
        #expect(requests.map(\.host) == ["api.test", "api.test"])
        #expect(requests[0].path == "/" + String(repeating: "a", count: 127))
        #expect(requests[1].path == "/x")
        #expect(requests[1].program == nil)
    }
}
