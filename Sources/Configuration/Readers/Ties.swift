extension UpstreamSettings {
    /// Whether a request can match both upstreams with equal priority.
    func ties(with other: UpstreamSettings) -> Bool {
        guard host == other.host, fields == other.fields, methods.isEmpty == other.methods.isEmpty,
            callers.isEmpty == other.callers.isEmpty, callers.overlaps(other.callers)
        else { return false }
        guard methods.isEmpty || methods.contains(where: other.methods.contains) else { return false }
        return !Set(prefixes).isDisjoint(with: other.prefixes)
    }

    /// Texts of the path prefixes at a host. Upstreams that tie have one in common.
    func paths(of host: HostPattern) -> Set<String> {
        Set(prefixes.map { "\(host)/" + $0.joined(separator: "/") })
    }

    /// Segments of each path prefix. Without paths, the prefix is `/`.
    private var prefixes: [[Substring]] { paths.isEmpty ? [[]] : paths.map { $0.split(separator: "/") } }
}
