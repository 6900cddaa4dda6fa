import HTTPMessage

/// Position of a span in a trace.
struct TraceMark: Sendable, Equatable {
    let trace: TraceID
    /// Identifier of the span: 8 bytes, never all zero (W3C Trace Context, section 3.2.2.4).
    let span = UInt64.random(in: 1 ... .max)
    /// `nil`: the trace begins here.
    let parent: UInt64?
    /// The parent is a span of another process.
    let isParentRemote: Bool
    let flags: TraceFlags

    /// Begins a new trace.
    init() { (trace, parent, isParentRemote, flags) = (TraceID(), nil, false, [.sampled, .random]) }

    /// - Parameter isRemote: the parent is a span of another process.
    init(below parent: TraceParent, isRemote: Bool) {
        (trace, self.parent, isParentRemote) = (parent.trace, parent.span, isRemote)
        flags = parent.flags.intersection(.known).union(.sampled)
    }

    /// Whether the proxy replaces this field. When a trace begins here, fields of another one are dropped.
    @inline(__always) func replaces(_ field: Field) -> Bool {
        field.known == .traceparent || field.known == .tracestate && parent == nil
    }

    /// The `traceparent` for requests below this span.
    var traceParent: TraceParent { TraceParent(trace: trace, span: span, flags: flags) }

    /// The span of a request, if it is recorded: the caller's decision counts; without one, the sampler decides.
    ///
    /// - Parameter asked: the request's `traceparent`, if it is valid.
    /// - Returns: `nil` when nothing is recorded. The request's own field then stays unchanged.
    static func decide(_ asked: TraceParent?, _ sampler: TraceSampler, _ random: inout FastRandom) -> TraceMark? {
        if let asked { return asked.flags.contains(.sampled) ? TraceMark(below: asked, isRemote: true) : nil }
        guard !sampler.takesNone, sampler.takes(random.next()) else { return nil }
        return TraceMark()
    }
}
