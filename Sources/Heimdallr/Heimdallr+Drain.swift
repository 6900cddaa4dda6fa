import Synchronization

extension Heimdallr {
    /// To be called before `shutdown()`: waits until a refresh token that was sent has been answered and the answer saved,
    /// and tries once more to save what could not be saved. A server that rotates refresh tokens has forgotten the old
    /// one by then, and to end in between would lose the grant. Returns at once when there is nothing to lose, and
    /// after `limit` in any case.
    public func drain(within limit: Duration) async {
        let deadline = ContinuousClock.now + limit
        func wait(while condition: () -> Bool) async {
            while condition(), ContinuousClock.now < deadline {
                guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { return }
            }
        }
        await wait { isSpending }
        guard let record = unsavedRecord else { return }
        let isDone = Flag()
        Task.detached { [self] in
            await resave(record)
            isDone.set()
        }
        await wait { !isDone.isSet }
    }
}

private final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}
