import WireText

/// Rules for forwarding trailer fields (RFC 9110 6.5.1).
package enum TrailerRules {
    /// Limits of one trailer section, in bytes of its lines and in fields.
    static let maxBytes = 8 << 10
    static let maxFields = 32

    /// Splits a trailer line of a response. The caller limits the number of lines.
    /// - Parameter line: with its CRLF.
    /// - Returns: ranges into the line; `nil` for a well-formed field that must not be forwarded.
    /// - Throws: 502. The answer must then not look complete to the client.
    package static func field(in line: Span<UInt8>) throws(MessageError) -> (name: ByteRange, value: ByteRange)? {
        do {
            let field = try FieldLine.split(line, 0, try ResponseHead.contentEnd(of: line))
            return isForbidden(field.name, in: line) ? nil : field
        } catch {
            throw error.fromUpstream
        }
    }

    /// Whether a field has a meaning in a head only: it is about framing, routing, authentication, request modifiers,
    /// response control or the form of the content (RFC 9110 6.5.1). Each mark counts as a hyphen, because CGI-like
    /// servers do not distinguish them.
    static func isForbidden(_ name: ByteRange, in line: Span<UInt8>) -> Bool {
        let lowered = MangledName.dashed(name, in: line)
        let known = KnownField.recognized(lowered.span, 0, lowered.count)
        if known != .other { return known != .etag && known != .proxyStatus && known != .server }
        if lowered == contentDigest { return false }
        return names.contains(lowered) || prefixes.contains(where: lowered.starts)
    }

    private static let contentDigest = [UInt8]("content-digest".utf8)
    private static let prefixes = ["content-", "proxy-", "if-", "sec-", "access-control-", "x-forwarded-"].map {
        [UInt8]($0.utf8)
    }

    private static let names: Set<[UInt8]> = Set(
        [
            "age", "expires", "forwarded", "vary", "pragma", "warning", "authentication-info", "authentication-control",
            "accept", "accept-encoding", "accept-language", "accept-charset", "accept-ranges", "allow", "from",
            "referer", "set-cookie2", "cookie2", "last-modified",
            "link", "refresh", "clear-site-data", "strict-transport-security", "x-real-ip", "x-http-method-override",
        ].map { [UInt8]($0.utf8) })
}
