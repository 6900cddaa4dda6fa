import Testing

@testable import Heimdallr

@Suite("guesses at a secret are limited")
struct GuessLimitTests {
    private let now = ContinuousClock.now

    @Test func `a source has ten failed logins a minute, and other sources don't pay for it`() {
        var limit = FailedLoginLimit()
        for _ in 0..<FailedLoginLimit.patience {
            #expect(!limit.isExhausted("a", now: now))
            _ = limit.failed("a", now: now)
        }
        #expect(limit.isExhausted("a", now: now) && !limit.isExhausted("b", now: now))
        #expect(limit.isExhausted("a", now: now + .seconds(59)))
        #expect(!limit.isExhausted("a", now: now + .seconds(60)))
    }

    @Test func `the log tells the first failed login at once, then many in one line`() {
        var limit = FailedLoginLimit()
        #expect(limit.failed("a", now: now) == 1)
        for second in 1..<10 { #expect(limit.failed("a", now: now + .seconds(second)) == nil) }
        #expect(limit.refused("a", now: now + .seconds(10)) == 10)
        #expect(limit.failed("b", now: now + .seconds(10)) == 1)
    }

    @Test func `the table of sources does not grow, and being many helps no one`() {
        var limit = FailedLoginLimit()
        for number in 0..<5000 { _ = limit.failed("\(number)", now: now) }
        #expect(limit.count == FailedLoginLimit.capacity)
        #expect(limit.isExhausted("somebody new", now: now))
        #expect(!limit.isExhausted("0", now: now))
        // An expired count makes room.
        _ = limit.failed("later", now: now + .seconds(61))
        #expect(limit.count == 1)
        #expect(!limit.isExhausted("somebody new", now: now + .seconds(61)))
    }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::6", "2001:db8:1:2::/64"), ("2001:db8::6", "2001:db8:0:0::/64"), ("::1", "0:0:0:0::/64"),
        ("fe80::1%eth0", "fe80:0:0:0::/64"), ("::", "0:0:0:0::/64"), ("a local socket", "a local socket"),
    ])
    func `an IPv6 address counts with its neighbours`(address: String, name: String) {
        #expect(FailedLoginLimit.name(address: address) == name)
    }
}
