import Synchronization
import TestSupport
import Testing

@testable import Proxy

@Suite("a value that is read again and again", .timeLimit(.minutes(1)))
struct FreshValueTests {
    @Test func `of several failures in a row the first is told, and the last good value stays`() async throws {
        let isGone = Mutex(false)
        let readings = Mutex(0)
        let told = Recorder<String>()
        let value = FreshValue(
            afterFailure: .milliseconds(1),
            read: {
                let number = readings.withLock { count in
                    count += 1
                    return count
                }
                if isGone.withLock({ $0 }) { throw TestFailure("gone") }
                return FreshValue.Reading(value: number, again: .milliseconds(1))
            }, failed: { told.append("\($0)") })
        await value.start()
        for turn in 1...2 {
            isGone.withLock { $0 = true }
            try await eventually("a failure") { told.all.count == turn }
            let (last, count) = (value.current(), readings.withLock { $0 })
            try await eventually("more failures") { readings.withLock { $0 } > count + 5 }
            #expect(value.current() == last)
            #expect(told.all.count == turn)
            isGone.withLock { $0 = false }
            try await eventually("a later value") { value.current() != last }
        }
    }
}
