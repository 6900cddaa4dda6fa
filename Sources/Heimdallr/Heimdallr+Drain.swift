extension Heimdallr {
    /// Waits until the refresh token in use is saved, at most for `limit`: a server that rotates refresh tokens has forgotten
    /// the old one. Call it before `shutdown()`. No token request begins after this call, and an unsent one is given up. A
    /// record that could not be saved gets one more try.
    public func drain(within limit: Duration) async { await drain(within: limit, until: { !self.isSpending }) }

    private func drain(within limit: Duration, until isOver: () -> Bool) async {
        // A request that began during the wait would be cut by `shutdown()`.
        apply { life, _ in life.yield() }
        let deadline = clock.now() + limit
        while !isOver(), clock.now() < deadline {
            guard (try? await clock.sleep(clock.now() + .milliseconds(5))) != nil else { return }
        }
        guard let record = unsavedRecord else { return }
        await waitBriefly(atMost: clock.now().duration(to: deadline), on: clock) { [self] in await resave(record) }
    }

    package var hasUnsavedRecord: Bool { unsavedRecord != nil }

    /// Starts the successor of another object of this client.
    /// - Parameter record: the record that the other object could not save.
    package func start(inheriting record: TokenRecord?) {
        apply { $0.inherit(record, $1) }
        start()
    }

    /// Prepares the hand-over of the record: no token request begins, and one under way ends first, within `limit`. The token
    /// in memory still serves.
    /// - Returns: the unsaved record, for `start(inheriting:)` of the successor.
    package func handOver(within limit: Duration) async -> TokenRecord? {
        watch(nil)
        await drain(within: limit, until: { !self.isAsking })
        return unsavedRecord
    }

    /// Takes over the callers of `former`, the object of this client before a reload, with their tokens and requests. Both
    /// must ask the same server for the same tokens.
    package func takeOverCallers(of former: Heimdallr) {
        if let callers, let others = former.callers { callers.takeOver(others) }
    }
}
