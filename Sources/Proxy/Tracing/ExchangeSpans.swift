/// The sampler and the receivers of requests' spans. Called on the loops, so the functions must return at once.
package struct ExchangeSpans: Sendable {
    /// Decides for requests without a sampling decision of the program.
    var sampler: TraceSampler
    /// Called after a recorded request has ended.
    var ended: @Sendable (ExchangeSpan) -> Void
    /// Called when a recorded request begins or ends its wait for a token of that client. The token request is made for
    /// it.
    var waits: @Sendable (_ client: String, _ mark: TraceMark, _ isWaiting: Bool) -> Void = { _, _, _ in }
}
