import Testing

@testable import Proxy

@Suite struct `The values used last` {
    @Test func `the values used last are kept, and never more than the limit`() {
        var values = RecentlyUsed<Int>(limit: 10)
        for number in 0..<1000 {
            values.set(number, for: "\(number)")
            #expect(values.count <= 10)
            // Always in use.
            #expect(values.value(for: "0") == 0)
        }
        #expect(values.value(for: "999") == 999)
        #expect(values.value(for: "1") == nil)
        #expect(values.count <= 10)
    }

    @Test func `a new value replaces the former one`() {
        var values = RecentlyUsed<Int>(limit: 4)
        for number in 0..<9 { values.set(number, for: "a") }
        #expect(values.value(for: "a") == 8)
        #expect(values.count == 1)
    }
}
