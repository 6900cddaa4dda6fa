import HTML

/// Renders pages one after the other, so that a probe does not wait behind many of them.
actor PageQueue {
    func make(_ page: @Sendable () -> HTML) -> HTML { page() }
}
