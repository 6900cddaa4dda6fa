import HTTPMessage
import Testing

@testable import Heimdallr

@Suite struct `Whose request goes out next` {
    private let begin = ContinuousClock.now

    private func at(_ seconds: Double) -> ContinuousClock.Instant { begin + .seconds(seconds) }

    /// A queue, and the requests that it admitted, by client and endpoint.
    private final class Driven {
        var queue: RequestQueue
        var names: [UInt64: String] = [:]

        init(_ change: (inout TokenRequestLimits) -> Void = { _ in }) {
            var limits = TokenRequestLimits()
            change(&limits)
            queue = RequestQueue(limits)
        }

        @discardableResult
        func enter(
            _ client: UInt64, at endpoint: String, _ count: Int = 1, until deadline: ContinuousClock.Instant? = nil
        ) -> [UInt64] {
            (0..<count).map { _ in
                let id = queue.makeID()
                names[id] = "\(client)@\(endpoint)"
                queue.enter(id, .init(client: client, endpoint: endpoint), until: deadline)
                return id
            }
        }

        func admit(_ now: ContinuousClock.Instant) -> [String] { admitted(now).compactMap { names[$0] } }
        func admitted(_ now: ContinuousClock.Instant) -> [UInt64] { queue.admit(now: now) }
        func leave(_ id: UInt64) -> Bool { queue.leave(id) }
        func expired(_ now: ContinuousClock.Instant) -> [UInt64] { queue.expire(now: now) }
    }

    @Test("one client has no more than its share, and the endpoint's last slots are for clients without any")
    func shares() {
        let driven = Driven()
        driven.enter(1, at: "hung", 250)
        #expect(driven.admit(begin) == Array(repeating: "1@hung", count: 12))
        driven.enter(2, at: "hung", 10)
        #expect(driven.admit(begin) == ["2@hung"])
        driven.enter(3, at: "hung", 10)
        #expect(driven.admit(at(60)) == ["3@hung"])
        #expect(driven.admit(at(60)) == [])
        driven.enter(3, at: "healthy")
        #expect(driven.admit(at(60)) == ["3@healthy"])
        #expect(driven.queue.underWayCount == 15)
        #expect(driven.queue.waitingCount == 238 + 9 + 9)
    }

    @Test(
        "the next slot is that of the endpoint with the fewest, then of the client with the fewest, then of the oldest")
    func order() {
        let driven = Driven {
            $0.all = 3
            $0.allSpare = 0
        }
        driven.enter(1, at: "a", 5)
        let first = driven.admitted(begin)
        #expect(first.count == 3)
        driven.enter(2, at: "a")
        driven.enter(1, at: "b")
        driven.enter(3, at: "b")
        var order: [String] = []
        for id in first {
            driven.queue.finish(id)
            order += driven.admit(begin)
        }
        // Client 1 has two under way at a when the first slot is free, and client 3 none at all.
        #expect(order == ["3@b", "2@a", "1@a"])
    }

    @Test("hung endpoints, however many, leave the process's share after a second, and never their own")
    func slow() {
        let driven = Driven()
        for endpoint in 0..<3 { driven.enter(UInt64(endpoint), at: "hung\(endpoint)", 100) }
        #expect(driven.admit(begin).count == 32)
        driven.enter(9, at: "healthy", 2)
        #expect(driven.admit(at(0.9)) == [])
        #expect(driven.queue.wake(now: at(0.9)) == at(1))
        // Theirs is all that the shares of the three clients leave.
        #expect(driven.admit(at(1)).count == 2 + 4)
        #expect(driven.queue.underWayCount == 36 + 2)
        #expect(driven.queue.wake(now: at(1)) == at(2))
        #expect(driven.queue.wake(now: at(2)) == nil)
    }

    @Test("the last slots of all are for endpoints without any request")
    func all() {
        let driven = Driven()
        for endpoint in 0..<20 { driven.enter(UInt64(endpoint), at: "hung\(endpoint)", 12) }
        var admitted: [UInt64] = []
        for second in 0..<10 { admitted += driven.admitted(at(Double(second))) }
        #expect(admitted.count == 96)
        for endpoint in 0..<40 { driven.enter(99, at: "healthy\(endpoint)") }
        for second in 20..<30 { admitted += driven.admitted(at(Double(second))) }
        #expect(admitted.count == 108)
        driven.queue.finish(admitted[107])
        #expect(driven.admitted(at(30)).count == 1)
    }

    @Test("a request that leaves or whose time is up takes no slot, and one that has its slot stays")
    func leaving() {
        let driven = Driven {
            $0.all = 1
            $0.allSpare = 0
        }
        let first = driven.enter(1, at: "a")[0]
        let second = driven.enter(1, at: "a", until: at(5))[0]
        let third = driven.enter(1, at: "a")[0]
        let fourth = driven.enter(1, at: "b")[0]
        #expect(driven.admitted(begin) == [first])
        #expect(driven.leave(first) == false)
        #expect(driven.leave(third))
        #expect(driven.leave(third) == false)
        #expect(driven.queue.wake(now: begin) == at(5))
        #expect(driven.expired(at(4.9)) == [])
        #expect(driven.expired(at(5)) == [second])
        driven.queue.finish(first)
        driven.queue.finish(first)
        #expect(driven.admitted(at(5)) == [fourth])
        driven.queue.finish(fourth)
        #expect(driven.queue.underWayCount == 0)
        #expect(driven.queue.waitingCount == 0)
        #expect(driven.queue.wake(now: at(5)) == nil)
    }

    @Test(
        "URLs at one server are one endpoint in the queue",
        arguments: [
            ("https://IdP.example/token", "https://idp.example:443/other?x=1"), ("http://a:80", "http://a/"),
            ("https://[::1]:8443/t", "https://[::1]:8443"),
        ])
    func origin(one: String, other: String) {
        #expect(WebURL.origin(of: one) == WebURL.origin(of: other))
        #expect(WebURL.origin(of: one) != WebURL.origin(of: "https://idp.example:8443/token"))
        #expect(WebURL.origin(of: "http://a:443/") != WebURL.origin(of: "https://a/"))
    }
}
