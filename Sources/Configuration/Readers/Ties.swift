extension UpstreamSettings {
    /// Whether some request fits both upstreams equally well, so that neither is the more specific one.
    func ties(with other: UpstreamSettings) -> Bool {
        guard host == other.host, methods.isEmpty == other.methods.isEmpty,
            callers.isEmpty == other.callers.isEmpty, callers.overlaps(other.callers)
        else { return false }
        guard methods.isEmpty || methods.contains(where: other.methods.contains) else { return false }
        return !Set(prefixes).isDisjoint(with: other.prefixes)
    }

    /// The prefixes by their segments; no path at all is the same as `/`.
    private var prefixes: [[Substring]] {
        paths.isEmpty ? [[]] : paths.map { $0.split(separator: "/") }
    }
}
