/// One trailer line of a response, as libcurl delivers it after the body.
public enum ResponseTrailer: Sendable, Equatable {
    /// May be passed on, as a trailer only; ranges into the line.
    case field(name: ByteRange, value: ByteRange)
    /// Well-formed, but not allowed in a trailer (RFC 9110 6.5.1). The caller drops it.
    case forbidden
    /// The blank line after the trailers of HTTP/2 answers.
    case end

    /// Checks one line. The caller bounds their number.
    /// - Parameter line: with its CRLF.
    /// - Throws: 502. The answer must then not look complete to the client.
    public static func check(line: Span<UInt8>) throws(MessageError) -> ResponseTrailer {
        do {
            let end = try ResponseHead.contentEnd(of: line)
            guard end > 0 else { return .end }
            let (name, value) = try FieldLine.split(line, 0, end)
            return TrailerRules.isForbidden(name, in: line) ? .forbidden : .field(name: name, value: value)
        } catch {
            throw error.fromUpstream
        }
    }
}
