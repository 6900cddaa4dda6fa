import FileSystem
import Synchronization
import TestSupport
import Testing

@testable import Heimdallr

@Suite("a value that is read again and again", .timeLimit(.minutes(1)))
struct FreshValueTests {
    @Test func `of several failures in a row the first is told, and the last good value stays`() async throws {
        let isGone = Mutex(false)
        let readings = Mutex(0)
        let told = Recorder<String>()
        let value = FreshValue(
            retry: (.milliseconds(1), .milliseconds(1)),
            read: {
                let number = readings.withLock { count in
                    count += 1
                    return count
                }
                if isGone.withLock({ $0 }) { throw SecretProviderError("gone") }
                return FreshValue.Reading(number, again: .milliseconds(1))
            }, onOutcome: { if case .failed(let fault, hasValue: _, isNew: true) = $0 { told.append("\(fault)") } })
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

    @Test func `a value that fails on demand is asked for again by its timer`() async throws {
        let isGone = Atomic(false)
        let value = FreshValue(
            retry: (.milliseconds(1), .milliseconds(1)),
            read: {
                if isGone.load(ordering: .relaxed) { throw SecretProviderError("gone") }
                return FreshValue.Reading(1, again: .seconds(3600))
            }, onOutcome: { _ in })
        await value.start()
        isGone.store(true, ordering: .relaxed)
        await value.refresh()
        #expect(value.fault == SecretProviderError("gone"))
        isGone.store(false, ordering: .relaxed)
        try await eventually("a good reading, long before the hour") { value.fault == nil }
    }
}
