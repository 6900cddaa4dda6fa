import HTTPMessage

extension AddressMap {
    /// Whether a Destination (RFC 4918, section 10.3) stays below the upstream's paths for every server that reads it, or
    /// is surely another server's.
    ///
    /// - Parameters:
    ///   - paths: of the upstream's rule; empty: all.
    ///   - isRewritten: the upstream is sent its own address for the program's; otherwise the value as it is.
    func covers(destination value: Span<UInt8>, paths: [String], isRewritten: Bool) -> Bool {
        guard Self.isPlain(value) else { return false }
        let start: Int
        let end: Int
        let isWhole: Bool
        switch target(of: value) {
        case .elsewhere: return true
        case .unclear: return false
        case .asked(let path): (start, end, isWhole) = (path.lowerBound, path.upperBound, !isRewritten)
        case .upstream(let path): (start, end, isWhole) = (path.lowerBound, path.upperBound, true)
        }
        // Who takes only the authority off reads a question mark as a part of the path.
        var bytes: [UInt8] = []
        for index in start..<value.count {
            bytes.append(value[index] == UInt8(ascii: "?") ? UInt8(ascii: "/") : value[index])
        }
        if PathRules.hasDotSegment(bytes.span) || PathRules.climbs(bytes.span) { return false }
        var path = value.extracting(start..<end)
        if isWhole {
            guard let length = PathRules.length(of: prefix, in: path) else { return false }
            path = path.extracting(length...)
        }
        guard !paths.isEmpty else { return true }
        if PathRules.isAmbiguous(path) { return false }
        for prefix in paths where PathRules.matches(prefix: Array(prefix.utf8), path: path) { return true }
        return false
    }

    /// An absolute URL or a path from the root, of nothing but what a request target may hold (RFC 9112, section 3.2),
    /// and without the quotes and angle brackets that some take off.
    private static func isPlain(_ value: Span<UInt8>) -> Bool {
        for index in value.indices {
            switch value[index] {
            case ...0x20, 0x7F..., UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"),
                UInt8(ascii: "#"):
                return false
            default: break
            }
        }
        // A host to some, a path to others.
        return value.count < 2 || value[0] != UInt8(ascii: "/") || value[1] != UInt8(ascii: "/")
    }
}
