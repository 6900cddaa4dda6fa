import Synchronization

extension Heimdallr {
    /// To be called before `shutdown()`. When a refresh token has been sent, waits for the answer until it is saved;
    /// tries once more to save what could not be saved. A server that rotates refresh tokens forgets the old one when
    /// it answers, so ending before the new one is saved would lose the login. Returns at once when there is nothing to
    /// lose, and after `limit` in any case.
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
