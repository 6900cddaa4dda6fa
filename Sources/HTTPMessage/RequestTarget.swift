import WireText

/// The four forms of a request target (RFC 9112 3.2), as ranges of the buffer that the head was parsed from.
///
/// Path and query may hold printable ASCII, but not space or `#` (a fragment is never sent, RFC 9110 7.1). A path may
/// not hold `\`, which browsers read as `/`, and servers don't. RFC 3986 allows none of `"<>^`{|}`, square brackets and
/// a lone `%`, but curl and others send them as typed, above all JSON in a query. No parser takes them for delimiters,
/// so they pass unchanged. Control characters and bytes above 0x7E are refused. `PathRules` tells whether a path is
/// ambiguous.
public enum RequestTarget: Sendable, Equatable {
    case origin(pathAndQuery: ByteRange)
    /// `pathAndQuery` may be empty or begin with `?`. A `/` must then be put before it (RFC 9110 4.2.3), except for
    /// OPTIONS, where empty means `*` (RFC 9112 3.2.4).
    case absolute(scheme: Scheme, authority: ByteRange, pathAndQuery: ByteRange)
    /// CONNECT only; has a port.
    case authority(ByteRange)
    /// OPTIONS only.
    case asterisk

    /// - Parameters:
    ///   - bytes: the buffer that `head` was parsed from.
    ///   - head: complete, with checked characters.
    /// - Throws: 400.
    public init(parsing bytes: Span<UInt8>, head: borrowing RequestHead) throws(MessageError) {
        let target = head.target
        let start = Int(target.start)
        guard !target.isEmpty else { throw MessageError("The request line has no target.") }
        if head.methodKind == .connect {
            guard try AuthorityParts(bytes, target).port != nil else {
                throw MessageError("The target of CONNECT has no port.")
            }
            self = .authority(target)
        } else if bytes[start] == ASCII.slash {
            self = .origin(pathAndQuery: target)
        } else if bytes[start] == ASCII.asterisk, target.count == 1 {
            guard head.methodKind == .options else { throw MessageError("The target '*' is for OPTIONS only.") }
            self = .asterisk
        } else {
            self = try Self.absolute(bytes, target, isUpgrade: head.upgradeRequested)
        }
    }

    /// - Parameter isUpgrade: whether `ws` and `wss` (RFC 6455 3) mean `http` and `https`. Libraries send the
    ///   WebSocket's own URL to proxies.
    private static func absolute(
        _ bytes: Span<UInt8>, _ target: ByteRange, isUpgrade: Bool
    ) throws(MessageError) -> RequestTarget {
        let start = Int(target.start)
        let end = Int(target.end)
        let scheme: Scheme
        let authorityStart: Int
        // The scheme is case-insensitive (RFC 3986 3.1).
        if end - start >= 7, ASCII.folded(bytes, start, 7) == 0x68_7474_703A_2F2F {
            scheme = .http
            authorityStart = start + 7
        } else if end - start >= 8, ASCII.folded(bytes, start, 8) == 0x6874_7470_733A_2F2F {
            scheme = .https
            authorityStart = start + 8
        } else if isUpgrade, end - start >= 5, ASCII.folded(bytes, start, 5) == 0x77_733A_2F2F {
            scheme = .http
            authorityStart = start + 5
        } else if isUpgrade, end - start >= 6, ASCII.folded(bytes, start, 6) == 0x7773_733A_2F2F {
            scheme = .https
            authorityStart = start + 6
        } else {
            throw MessageError("The target is neither a path nor an http:// or https:// URL.")
        }
        var authorityEnd = authorityStart
        while authorityEnd < end, bytes[authorityEnd] != ASCII.slash, bytes[authorityEnd] != ASCII.question {
            authorityEnd += 1
        }
        let authority = ByteRange(authorityStart, authorityEnd)
        _ = try AuthorityParts(bytes, authority)
        return .absolute(scheme: scheme, authority: authority, pathAndQuery: ByteRange(authorityEnd, end))
    }
}
