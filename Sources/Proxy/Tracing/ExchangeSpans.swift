/// Sampler and receivers of the spans of requests. Both functions are called on the loops and must return at once.
package struct ExchangeSpans: Sendable {
    /// Sampler of requests without a sampling decision of the program.
    var sampler: TraceSampler
    /// Called after a recorded request has ended.
    var ended: @Sendable (ExchangeSpan) -> Void
    /// Called when a recorded request begins or ends a wait for a token of `client`.
    var waits: @Sendable (_ client: String, _ span: SpanContext, _ isWaiting: Bool) -> Void = { _, _, _ in }
}
