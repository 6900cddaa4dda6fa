import HTTPMessage

/// Position of a span in a trace.
struct SpanContext: Sendable, Equatable {
    let trace: TraceID
    /// Identifier of the span: 8 bytes, never all zero (W3C Trace Context, section 3.2.2.4).
    let span = UInt64.random(in: 1 ... .max)
    /// Parent span; `nil` if the trace begins here.
    let parent: UInt64?
    /// Whether the parent is a span of another process.
    let isParentRemote: Bool
    let flags: TraceFlags

    /// Begins a new trace.
    init() { (trace, parent, isParentRemote, flags) = (TraceID(), nil, false, [.sampled, .random]) }

    /// - Parameter isRemote: whether the parent is a span of another process.
    init(below parent: TraceParent, isRemote: Bool) {
        (trace, self.parent, isParentRemote) = (parent.trace, parent.span, isRemote)
        flags = parent.flags.intersection(.known).union(.sampled)
    }

    /// Whether the program's field is dropped: `traceparent`, and the `tracestate` of a trace that is not continued.
    @inline(__always) func replaces(_ field: Field) -> Bool {
        field.known == .traceparent || field.known == .tracestate && parent == nil
    }

    /// Value of `traceparent` for child spans.
    var traceParent: TraceParent { TraceParent(trace: trace, span: span, flags: flags) }

    /// Decides whether a request's span is recorded: as the program's `traceparent` says, or else by the sampler.
    ///
    /// - Parameter asked: valid `traceparent` of the request; `nil` for none.
    /// - Returns: `nil` if no span is recorded. The program's `traceparent` then passes unchanged.
    static func decide(_ asked: TraceParent?, _ sampler: TraceSampler, _ random: inout FastRandom) -> SpanContext? {
        if let asked { return asked.flags.contains(.sampled) ? SpanContext(below: asked, isRemote: true) : nil }
        guard !sampler.takesNone, sampler.takes(random.next()) else { return nil }
        return SpanContext()
    }
}
