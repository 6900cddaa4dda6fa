import WireText

/// How the end of a body is found (RFC 9112 6.3).
public enum BodyFraming: Sendable, Equatable {
    /// There is no body.
    case none
    /// This many bytes; `.length(0)` where the message says `Content-Length: 0`.
    case length(UInt64)
    /// Until the last chunk and its trailers.
    case chunked
    /// Until the connection (or the HTTP/2 stream) ends: responses only.
    case untilClose
}

extension BodyFraming {
    /// Appends the line in front of a chunk, `1f\r\n`. Allocates only when `output` has to grow.
    ///
    /// - Parameter size: bytes of the chunk, more than 0: a size of 0 would end the body (RFC 9112 7.1), so nothing
    ///   is appended for it.
    public static func appendChunkSizeLine(_ size: Int, to output: inout [UInt8]) {
        guard size > 0 else { return }
        var shift = (Int.bitWidth - size.leadingZeroBitCount - 1) & ~3
        while shift >= 0 {
            let digit = UInt8((size >> shift) & 0xF)
            output.append(digit < 10 ? ASCII.zero + digit : 0x61 - 10 + digit)
            shift -= 4
        }
        output.append(ASCII.cr)
        output.append(ASCII.lf)
    }
}
