public import Tracing

/// Of which requests spans are made, and who gets them. Called on the loops: must return at once.
public struct ExchangeSpans: Sendable {
    /// Decides where the program said nothing.
    public var sampler: TraceSampler
    /// A request that is recorded is over.
    public var ended: @Sendable (ExchangeSpan) -> Void
    /// A request that is recorded begins to wait for a token of that client, or stops to: a token request is made for it.
    public var waits: @Sendable (_ client: String, _ mark: TraceMark, _ isWaiting: Bool) -> Void

    public init(
        sampler: TraceSampler, ended: @escaping @Sendable (ExchangeSpan) -> Void,
        waits: @escaping @Sendable (_ client: String, _ mark: TraceMark, _ isWaiting: Bool) -> Void = { _, _, _ in }
    ) {
        self.sampler = sampler
        self.ended = ended
        self.waits = waits
    }
}
