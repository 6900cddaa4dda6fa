import HTML

/// Makes pages one after the other: they take the processor, and a probe shall not wait behind a crowd of them.
actor PageQueue {
    func make(_ page: @Sendable () -> HTML) -> HTML { page() }
}
