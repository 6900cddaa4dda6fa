/// One trailer line of a response, as libcurl hands it over behind the body.
public enum ResponseTrailer: Sendable, Equatable {
    /// May be passed on, as a trailer only; ranges into the line.
    case field(name: ByteRange, value: ByteRange)
    /// Well-formed, but nothing that may come in a trailer (RFC 9110 6.5.1): drop it.
    case forbidden
    /// The blank line behind the trailers, which HTTP/2 answers have.
    case end

    /// The caller bounds how many there are.
    ///
    /// - Parameter line: with its CRLF.
    /// - Throws: 502; the answer must not look complete to the client then.
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
