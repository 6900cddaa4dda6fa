import WireText

// Parts of a request that a log may show, even if the request was refused within its head.
extension RequestHead {
    /// The requested resource without parts that may be secret: user information, query, fragment.
    public struct Asked: Sendable, Equatable {
        /// Authority of the target, if it has one (RFC 9112 3.2.2), else of Host; valid, or empty.
        public var authority = ByteRange.empty
        /// The path, or `*`. Empty when the target has no path, or its path is unknown.
        public var path = ByteRange.empty
        /// Whether the target has no path, which means `/` (RFC 9110 4.2.3).
        public var isRoot = false
    }

    /// - Parameter bytes: the parsed buffer, even if incomplete.
    public func asked(in bytes: Span<UInt8>) -> Asked {
        var asked = Asked(authority: host)
        let (target, isWhole) = targetSoFar(bytes)
        guard !target.isEmpty else { return asked }
        let start = Int(target.start)
        let end = Int(target.end)
        if methodKind == .connect {
            if isWhole { asked.authority = Self.authority(bytes, start, end) }
            return asked
        }
        if bytes[start] == ASCII.slash || (isWhole && target.count == 1 && bytes[start] == ASCII.asterisk) {
            asked.path = ByteRange(start, Self.endOfPath(bytes, start, end))
            return asked
        }
        guard let authorityStart = Self.authorityStart(bytes, start, end) else { return asked }
        var authorityEnd = authorityStart
        while authorityEnd < end, bytes[authorityEnd] != ASCII.slash, bytes[authorityEnd] != ASCII.question {
            authorityEnd += 1
        }
        // An unfinished authority may be the beginning of `user:password@host`.
        guard isWhole || authorityEnd < end else { return asked }
        asked.authority = Self.authority(bytes, authorityStart, authorityEnd)
        // A slash in a password ends the authority too early; the text before the slash is then not valid.
        guard !asked.authority.isEmpty else { return asked }
        asked.path = ByteRange(authorityEnd, Self.endOfPath(bytes, authorityEnd, end))
        asked.isRoot = isWhole && asked.path.isEmpty
        return asked
    }

    private static func endOfPath(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Int {
        var index = start
        while index < end, bytes[index] != ASCII.question, bytes[index] != ASCII.hash { index += 1 }
        return index
    }

    /// Returns the offset after `scheme://`, for any scheme.
    private static func authorityStart(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Int? {
        var index = start
        while index < end, index < start + 16, bytes[index] != ASCII.colon { index += 1 }
        guard index + 3 <= end, bytes[index] == ASCII.colon, bytes[index + 1] == ASCII.slash,
            bytes[index + 2] == ASCII.slash
        else { return nil }
        return index + 3
    }

    /// The authority without user information; empty when invalid.
    private static func authority(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> ByteRange {
        var hostStart = start
        for index in start..<end where bytes[index] == ASCII.at { hostStart = index + 1 }
        let range = ByteRange(hostStart, end)
        return (try? AuthorityParts(bytes, range)) == nil ? .empty : range
    }
}
