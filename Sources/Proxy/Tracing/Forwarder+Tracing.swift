import Configuration
import HTTPMessage
import HTTPServer
import Reactor

// Position of a request in a trace, and the upstream's `traceparent` (W3C Trace Context).
extension Forwarder {
    private static let name = Array("traceparent".utf8)

    func takeMark(_ sampler: TraceSampler) {
        let asked = stream.request.with { head, bytes in
            bytes.isEmpty ? nil : TraceParent(in: head.fields, of: bytes)
        }
        current.mark = TraceMark.decide(asked, sampler, &shard.random)
    }

    /// Whether the proxy replaces this field. When a trace begins here, fields of another one are dropped.
    @inline(__always)
    static func replaces(_ field: Field, _ mark: TraceMark) -> Bool {
        field.known == .traceparent || field.known == .tracestate && mark.parent == nil
    }

    /// - Parameter dropped: fields that the configuration injects, which the proxy does not write here.
    func writeMark(_ mark: TraceMark, _ dropped: FieldNames, to output: inout ByteBuffer) {
        guard !dropped.contains(Self.name.span) else { return }
        let text = mark.traceParent.text
        output.append("traceparent: ")
        output.append(text.span)
        output.append("\r\n")
    }

    /// Notes that a recorded request waits for a token, so that the token request belongs to its trace. Not for tokens
    /// of callers, which may belong to another one.
    /// - Returns: a function to call at the end of the wait.
    func traceWait(at upstream: Upstream) -> (@Sendable () -> Void)? {
        guard let mark = current.mark, let spans = shard.observer.spans, !upstream.exchangesCallers,
            let client = upstream.rules.settings.client
        else { return nil }
        spans.waits(client, mark, true)
        return { spans.waits(client, mark, false) }
    }
}

extension TraceParent {
    /// `nil` for an absent, invalid or repeated field (section 4.3).
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
