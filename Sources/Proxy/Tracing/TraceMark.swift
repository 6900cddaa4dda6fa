import HTTPMessage

/// Position of a span in a trace.
struct TraceMark: Sendable, Equatable {
    let trace: TraceID
    let span: SpanID
    /// `nil`: the trace begins here.
    let parent: SpanID?
    /// The parent is a span of another process.
    let isParentRemote: Bool
    let flags: TraceFlags

    /// Begins a new trace.
    static func root() -> TraceMark {
        var generator = SystemRandomNumberGenerator()
        return TraceMark(
            trace: TraceID(using: &generator), span: SpanID(using: &generator), parent: nil,
            isParentRemote: false, flags: [.sampled, .random])
    }

    /// A child of another process's span.
    static func child(of parent: TraceParent) -> TraceMark { child(of: parent, isRemote: true) }

    /// A child of this span.
    func child() -> TraceMark { .child(of: traceParent, isRemote: false) }

    private static func child(of parent: TraceParent, isRemote: Bool) -> TraceMark {
        var generator = SystemRandomNumberGenerator()
        return TraceMark(
            trace: parent.trace, span: SpanID(using: &generator), parent: parent.span,
            isParentRemote: isRemote, flags: parent.flags.intersection(.known).union(.sampled))
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
    static func decide(
        _ asked: TraceParent?, _ sampler: TraceSampler, _ random: inout FastRandom
    ) -> TraceMark? {
        if let asked { return asked.flags.contains(.sampled) ? child(of: asked) : nil }
        guard !sampler.takesNone, sampler.takes(random.next()) else { return nil }
        return root()
    }
}
