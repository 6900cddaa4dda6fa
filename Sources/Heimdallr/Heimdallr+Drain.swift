// The beginning of a client, its end, and the hand-over to a successor.
extension Heimdallr {
    /// Gets a token from the store or the server. Returns at once. Has no effect if `exchangesCallers`.
    public func start() {
        guard !exchangesCallers else { return }
        followSubject()
        apply { $0.start($1) }
    }

    /// Ignores the stored access token, which was requested with other settings. Still uses the stored refresh token.
    package func ignoreStoredToken() { apply { life, _ in life.ignoreStoredToken() } }

    /// Waits until a refresh or a login under way has saved its tokens, at most for `limit`. Call this before
    /// `shutdown()`, which could lose a rotated refresh token. Token requests that are not sent yet are cancelled, and
    /// no others begin. At the end, tries once more to save an unsaved record.
    public func drain(within limit: Duration) async { await drain(within: limit, until: { !self.isSpending }) }

    private func drain(within limit: Duration, until isOver: () -> Bool) async {
        // No request may begin during the wait, because `shutdown()` would cut it.
        apply { life, _ in life.yield() }
        let deadline = clock.now() + limit
        while !isOver(), clock.now() < deadline {
            guard (try? await clock.sleep(clock.now() + .milliseconds(5))) != nil else { return }
        }
        guard let record = unsavedRecord else { return }
        await waitBriefly(atMost: clock.now().duration(to: deadline), on: clock) { [self] in await resave(record) }
    }

    /// Whether a token request of any kind is under way.
    var isAsking: Bool { isSpending || look { $0.fetch != nil } }

    package var hasUnsavedRecord: Bool { unsavedRecord != nil }

    /// The store's fault, if a stop now loses a refresh token that the client can't replace by itself; otherwise `nil`.
    package var faultAtStop: TokenStoreError? {
        look { $0.settings.needs == .nobody ? nil : $0.saving.faultOfRefreshToken }
    }

    /// Starts this object as the successor of another object of the same client.
    /// - Parameter record: the record that the other object could not save; `nil`: it has saved everything.
    package func start(inheriting record: TokenRecord?) {
        apply { $0.inherit(record, $1) }
        start()
    }

    /// Prepares the hand-over of the record to a successor. No token request begins, and a request under way may take
    /// `limit` to end. The token in memory stays in use.
    /// - Returns: the unsaved record, for `start(inheriting:)` of the successor.
    package func handOver(within limit: Duration) async -> TokenRecord? {
        watch(nil)
        await drain(within: limit, until: { !self.isAsking })
        return unsavedRecord
    }

    /// Takes over the callers of `former`, with their tokens and requests. `former` is the client's object before a
    /// reload. Both must request the same tokens from the same server.
    package func takeOverCallers(of former: Heimdallr) {
        if let callers, let others = former.callers { callers.takeOver(others) }
    }
}
