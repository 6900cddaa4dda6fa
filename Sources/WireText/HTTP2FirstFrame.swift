/// HTTP/2's SETTINGS, the first frame of every server (RFC 9113, section 3.4).
public enum HTTP2FirstFrame {
    /// Size of a frame's header.
    public static let headerSize = 9

    /// Whether the bytes begin with the header of a SETTINGS frame (section 6.5) on stream 0, without flags: fields of 6
    /// bytes each. No answer of HTTP/1.1 begins so.
    public static func isSettings(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.count >= headerSize, bytes[0] == 0, bytes[3] == 4 else { return false }
        for index in 4..<headerSize where bytes[index] != 0 { return false }
        return (Int(bytes[1]) << 8 | Int(bytes[2])) % 6 == 0
    }
}
