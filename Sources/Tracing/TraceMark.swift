/// Which span of which trace something of ours is.
public struct TraceMark: Sendable, Equatable {
    public let trace: TraceID
    public let span: SpanID
    /// `nil`: the trace begins here.
    public let parent: SpanID?
    /// Another process has it.
    public let isParentRemote: Bool
    public let flags: TraceFlags

    /// The trace of what is not part of one yet.
    public static func root() -> TraceMark {
        var generator = SystemRandomNumberGenerator()
        return TraceMark(
            trace: TraceID(using: &generator), span: SpanID(using: &generator), parent: nil,
            isParentRemote: false, flags: [.sampled, .random])
    }

    /// Beneath what somebody else does.
    public static func child(of parent: TraceParent) -> TraceMark { child(of: parent, isRemote: true) }

    /// Beneath this one.
    public func child() -> TraceMark { .child(of: traceParent, isRemote: false) }

    private static func child(of parent: TraceParent, isRemote: Bool) -> TraceMark {
        var generator = SystemRandomNumberGenerator()
        return TraceMark(
            trace: parent.trace, span: SpanID(using: &generator), parent: parent.span,
            isParentRemote: isRemote, flags: parent.flags.intersection(.known).union(.sampled))
    }

    /// What is said to whom we ask.
    public var traceParent: TraceParent { TraceParent(trace: trace, span: span, flags: flags) }

    /// Where a request belongs, if it is recorded: whoever asked has decided; where nobody did, lots are drawn.
    ///
    /// - Parameter asked: what the request says, if it says something that can be used.
    /// - Returns: `nil`: nothing is recorded, and what the request says stays as it is.
    public static func decide(
        _ asked: TraceParent?, _ sampler: TraceSampler, _ lots: inout LotDrawing
    ) -> TraceMark? {
        if let asked { return asked.flags.contains(.sampled) ? child(of: asked) : nil }
        guard !sampler.takesNone, sampler.takes(lots.next()) else { return nil }
        return root()
    }
}
