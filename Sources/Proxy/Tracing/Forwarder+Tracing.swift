import Configuration
import HTTPMessage
import HTTPServer
import Reactor
import Tracing

// Where a request belongs, and what its upstream is told of that (W3C Trace Context).
extension Forwarder {
    private static let name = Array("traceparent".utf8)

    /// Finds out whether it is recorded.
    func takeMark(_ sampler: TraceSampler) {
        let asked = connection.withHead { head, bytes in
            bytes.isEmpty ? nil : TraceParent(in: head.fields, of: bytes)
        }
        current.mark = TraceMark.decide(asked, sampler, &shard.lots)
    }

    /// Whether ours stands in the field's place. Where a trace begins here, what is left of another one does not go on.
    @inline(__always)
    static func replaces(_ field: Field, _ mark: TraceMark) -> Bool {
        field.known == .traceparent || field.known == .tracestate && mark.parent == nil
    }

    /// - Parameter dropped: the fields that the configuration injects are its own.
    func writeMark(_ mark: TraceMark, _ dropped: FieldNames, to output: inout ByteBuffer) {
        guard !dropped.contains(Self.name.span) else { return }
        let text = mark.traceParent.text
        output.append("traceparent: ")
        output.append(text.span)
        output.append("\r\n")
    }

    /// A token request that is made now is made for this request, if it is recorded. Not where callers have tokens of
    /// their own: it may be another one's.
    /// - Returns: what is to be called when the wait is over.
    func traceWait(at upstream: Upstream) -> (@Sendable () -> Void)? {
        guard let mark = current.mark, let spans = shard.observer.spans, !upstream.exchangesCallers,
            let client = upstream.rules.settings.client
        else { return nil }
        spans.waits(client, mark, true)
        return { spans.waits(client, mark, false) }
    }

    func exchangeSpan(_ mark: TraceMark, _ record: AccessRecord) -> ExchangeSpan {
        var span = ExchangeSpan(mark, record)
        if current.ledger.isSent {
            span.origin = current.admitted.destination?.origin
            span.pathPrefix = current.upstream?.rules.pathPrefix ?? []
        }
        span.status = current.ledger.status
        span.isHTTP2 = current.ledger.isHTTP2
        span.isHTTP10 = current.exchange.request.isHTTP10
        let times = current.ledger.times
        let start = current.ledger.started
        span.tokenCame = times.tokenCameAt?.since(start)
        span.connected = times.connectedAt?.since(start)
        span.answered = times.answeredAt?.since(start)
        return span
    }
}

extension TraceParent {
    /// `nil`: there is none, or none that can be used; two of them are none (section 4.3).
    init?(in fields: [Field], of bytes: Span<UInt8>) {
        var found: TraceParent?
        var hasOne = false
        for field in fields where field.known == .traceparent {
            guard !hasOne else { return nil }
            hasOne = true
            found = TraceParent(bytes[field.value])
        }
        guard let found else { return nil }
        self = found
    }
}
