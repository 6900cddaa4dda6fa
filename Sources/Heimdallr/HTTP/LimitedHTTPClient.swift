/// Sends the requests of one client and its callers to its authorization server, each in a slot of the limiter.
struct LimitedHTTPClient: HeimdallrHTTPClient {
    /// Sends at once, for a request that has its slot.
    let inner: any HeimdallrHTTPClient
    private let limiter: TokenRequestLimiter
    private let client: RequestQueue.ID

    init(_ inner: any HeimdallrHTTPClient, _ limiter: TokenRequestLimiter) {
        self.inner = inner
        self.limiter = limiter
        client = limiter.makeClient()
    }

    /// The wait for a slot counts towards the request's timeout.
    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse {
        let deadline = limiter.clock.now() + request.timeout
        guard let slot = await slot(for: request.url, until: deadline) else { throw HeimdallrHTTPClientError.timeout }
        defer { release(slot) }
        guard slot.hasWaited else { return try await inner.send(request) }
        var late = request
        late.timeout = max(.milliseconds(1), limiter.clock.now().duration(to: deadline))
        return try await inner.send(late)
    }

    /// Waits for a slot at the authority of `url`.
    /// - Returns: `nil` when the task was cancelled or the deadline passed.
    func slot(for url: String, until deadline: ContinuousClock.Instant? = nil) async -> TokenRequestLimiter.Slot? {
        await limiter.acquire(.init(client: client, endpoint: TokenEndpointURL.origin(of: url)), until: deadline)
    }

    func release(_ slot: TokenRequestLimiter.Slot) { limiter.release(slot) }
}
