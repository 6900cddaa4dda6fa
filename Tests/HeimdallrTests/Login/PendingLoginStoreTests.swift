import Testing

@testable import Heimdallr

@Suite struct `Logins that are pending, in memory` {
    @Test("a login that was put is taken once, and not after its end")
    func once() {
        let clock = ManualClock()
        let store = PendingLoginMemoryStore(clock: clock.clock)
        store.putPending(Secret("verifier"), key: "a", life: .seconds(60))
        store.putPending(Secret("late"), key: "b", life: .seconds(60))
        #expect(store.takePending(key: "a") == Secret("verifier"))
        #expect(store.takePending(key: "a") == nil)
        clock.advance(by: .seconds(60))
        #expect(store.takePending(key: "b") == nil)
    }

    @Test("logins that nobody takes do not pile up")
    func bounded() {
        let store = PendingLoginMemoryStore()
        for index in 0..<(2 * PendingLoginMemoryStore.limit) {
            store.putPending(Secret("x"), key: "\(index)", life: .seconds(60 + index))
        }
        #expect(store.takePending(key: "0") == nil)
        #expect(store.takePending(key: "\(2 * PendingLoginMemoryStore.limit - 1)") != nil)
    }
}
