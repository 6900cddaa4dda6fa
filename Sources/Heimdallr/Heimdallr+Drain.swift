extension Heimdallr {
    /// To be called before `shutdown()`. No token request begins after this call, and an unsent one is given up. When a
    /// refresh token has been sent, waits for the answer until it is saved; tries once more to save what could not be saved.
    /// A server that rotates refresh tokens forgets the old one when it answers, so ending before the new one is saved would
    /// lose the login. Returns at once when there is nothing to lose, and after `limit` in any case.
    public func drain(within limit: Duration) async {
        await drain(within: limit, until: { !self.isSpending })
    }

    private func drain(within limit: Duration, until isOver: () -> Bool) async {
        // A request that begins during the wait for another one would be cut by `shutdown()`.
        apply { life, _ in life.yield() }
        let deadline = clock.now() + limit
        while !isOver(), clock.now() < deadline {
            guard (try? await clock.sleep(clock.now() + .milliseconds(5))) != nil else { return }
        }
        guard let record = unsavedRecord else { return }
        let outcome = FirstOutcome<Void>()
        Task.detached { [self] in
            await resave(record)
            outcome.end(.success(()))
        }
        let alarm = Task.detached { [clock] in
            try? await clock.sleep(deadline)
            outcome.end(.success(()))
        }
        try? await withCheckedThrowingContinuation { outcome.await($0) }
        alarm.cancel()
    }

    /// As `start()`, for the object that follows another one of this client in the process.
    /// - Parameter record: what that one could not save.
    package func start(inheriting record: TokenRecord?) {
        apply { life, _ in life.inherit(record) }
        start()
    }

    /// Prepares for another object of this client to take the record: no token request begins any more, and one that is under
    /// way ends first, within `limit`. The token in memory serves on.
    /// - Returns: what could not be saved, for `start(inheriting:)` of the other one.
    package func handOver(within limit: Duration) async -> TokenRecord? {
        endStoreWatch()
        await drain(within: limit, until: { !self.isAsking })
        return unsavedRecord
    }

    /// Goes on with the callers of `former`, the object of this client before a reload, and their tokens. To be called when
    /// both ask the same server for the same tokens.
    package func takeOverCallers(of former: Heimdallr) {
        if let callers, let others = former.callers { callers.takeOver(others) }
    }
}
