import HTTPMessage

extension AddressMap {
    /// Whether a Destination (RFC 4918, section 10.3) surely names another server, or a path that `paths` admit.
    /// `false` if servers could read the value differently.
    /// - Parameters:
    ///   - paths: paths of the upstream's rule; empty for all paths.
    ///   - isRewritten: whether the value is rewritten to the upstream's own address before it is sent.
    func covers(destination value: Span<UInt8>, paths: [String], isRewritten: Bool) -> Bool {
        guard Self.isPlain(value) else { return false }
        let start: Int
        let end: Int
        let includesPrefix: Bool
        switch target(of: value) {
        case .elsewhere: return true
        case .unclear: return false
        case .named(let path): (start, end, includesPrefix) = (path.lowerBound, path.upperBound, !isRewritten)
        case .upstreamAddress(let path): (start, end, includesPrefix) = (path.lowerBound, path.upperBound, true)
        }
        // Some servers read a question mark as part of the path, so dot segments after it count too.
        var bytes: [UInt8] = []
        for index in start..<value.count {
            bytes.append(value[index] == UInt8(ascii: "?") ? UInt8(ascii: "/") : value[index])
        }
        if PathRules.hasDotSegment(bytes.span) || PathRules.climbs(bytes.span) { return false }
        var path = value.extracting(start..<end)
        if includesPrefix {
            guard let length = PathRules.length(of: prefix, in: path) else { return false }
            path = path.extracting(length...)
        }
        guard !paths.isEmpty else { return true }
        if PathRules.isAmbiguous(path) { return false }
        for prefix in paths where PathRules.matches(prefix: Array(prefix.utf8), path: path) { return true }
        return false
    }

    /// Whether the value consists of characters of a request target (RFC 9112, section 3.2) and does not begin with two
    /// slashes. Some servers would remove quotes and angle brackets.
    private static func isPlain(_ value: Span<UInt8>) -> Bool {
        for index in value.indices {
            switch value[index] {
            case ...0x20, 0x7F..., UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"),
                UInt8(ascii: "#"):
                return false
            default: break
            }
        }
        // After two slashes, some servers read a host, others a path.
        return value.count < 2 || value[0] != UInt8(ascii: "/") || value[1] != UInt8(ascii: "/")
    }
}
