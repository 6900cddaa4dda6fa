import Testing

@testable import Reactor

@Suite("the order and the times of attempts to connect")
struct AttemptTests {
    private static let start = LoopTime(nanoseconds: 1_000_000_000)

    private static func at(_ milliseconds: Int) -> LoopTime { start + .milliseconds(milliseconds) }

    @Test func `the next address is tried after 250 ms, and at once after a failure`() {
        var times = AttemptTimes(count: 3, now: Self.start, deadline: Self.at(5000))
        #expect(times.next(Self.start) == 0)
        #expect(times.next(Self.at(249)) == nil)
        #expect(times.wake == Self.at(250))
        #expect(times.next(Self.at(250)) == 1)
        times.failed(Self.at(260))
        #expect(times.wake == Self.at(260))
        #expect(times.next(Self.at(260)) == 2)
        #expect(times.isLast)
        #expect(times.wake == Self.at(5000))
        #expect(times.next(Self.at(4000)) == nil)
    }

    @Test(arguments: [100, 1000, 2500])
    func `each address of a name gets its attempt, however short the limit is`(limit: Int) {
        var times = AttemptTimes(count: 16, now: Self.start, deadline: Self.at(limit))
        var tried: [Int] = []
        while times.wake < Self.at(limit) { if let next = times.next(times.wake) { tried.append(next) } }
        #expect(tried == Array(0..<16))
    }

    private static func addresses(_ texts: [String]) -> [SocketAddress] {
        texts.compactMap { SocketAddress(numericHost: $0, port: 80) }
    }

    @Test func `families take turns, and silent addresses come last`() {
        let found = Self.addresses(["2001:db8::1", "2001:db8::2", "2001:db8::3", "192.0.2.1", "192.0.2.2"])
        let silent = SilentAddresses()
        #expect(
            silent.order(found)
                == Self.addresses(["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "2001:db8::3"]))
        silent.note(Self.addresses(["2001:db8::1", "192.0.2.1"]))
        #expect(
            silent.order(found)
                == Self.addresses(["2001:db8::2", "192.0.2.2", "2001:db8::3", "2001:db8::1", "192.0.2.1"]))
        // Another port is another server, and with no other address the order stays.
        #expect(silent.order([SocketAddress(.ipv4(address: 0xc000_0201, port: 81))]).count == 1)
        let all = Self.addresses(["192.0.2.1", "2001:db8::1"])
        #expect(silent.order(all) == all)
    }

    @Test func `a flood of silent addresses takes bounded memory, and no known one's place`() {
        let silent = SilentAddresses()
        let first = Self.addresses(["192.0.2.1", "192.0.2.2"])
        silent.note([first[0]])
        silent.note((0..<5000).map { SocketAddress(.ipv4(address: 0xc633_0000 + $0, port: 80)) })
        #expect(silent.order(first) == [first[1], first[0]])
        let late = SocketAddress(.ipv4(address: 0xc633_0000 + 4999, port: 80))
        #expect(silent.order([late, first[1]]) == [late, first[1]])
    }
}
