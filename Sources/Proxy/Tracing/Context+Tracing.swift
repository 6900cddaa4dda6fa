import Configuration
import HTTPMessage
import HTTPServer

// Position of a request in a trace (W3C Trace Context).
extension Context {
    mutating func takeSpan(_ sampler: TraceSampler) {
        // A repeated field is invalid (section 4.3).
        let asked = stream.request.with { head, bytes in
            bytes.isEmpty
                ? nil
                : head.fields.value(ofOnly: { $0.known == .traceparent }).flatMap { TraceParent(bytes[$0]) }
        }
        span = SpanContext.decide(asked, sampler, &shard.random)
    }

    /// Notes that a recorded request waits for a token. The token request then joins this request's trace. Not used for
    /// tokens of callers.
    /// - Returns: function to call at the end of the wait; `nil` if nothing was noted.
    func traceWait(at upstream: Upstream) -> (@Sendable () -> Void)? {
        guard let span, let spans = shard.observer.spans, !upstream.exchangesCallers,
            let client = upstream.rule.settings.client
        else { return nil }
        spans.waits(client, span, true)
        return { spans.waits(client, span, false) }
    }
}
