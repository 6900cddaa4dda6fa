import HTTPMessage
import WireText

// The first bytes of an answer, before its status line is whole.
extension HTTP1Exchange {
    /// Refuses a SETTINGS frame of HTTP/2.
    /// - Returns: `false` while too few bytes are there to know.
    @inline(never)
    static func isNoFrame(_ bytes: Span<UInt8>) throws(MessageError) -> Bool {
        guard bytes.count >= HTTP2FirstFrame.headerSize else { return false }
        if HTTP2FirstFrame.isSettings(bytes) { throw Self.http2Only }
        return true
    }

    /// Refuses bytes that can't become a status line.
    static func checkBeginning(_ bytes: Span<UInt8>) throws(MessageError) {
        for index in 0..<min(bytes.count, Self.beginning.count) where bytes[index] != Self.beginning[index] {
            throw MessageError(status: 502, detail: "The status line doesn't begin with HTTP/1.1 or HTTP/1.0.")
        }
    }
    private static let beginning = Array("HTTP/1.".utf8)

    static let http2Only = MessageError(status: 502, detail: "The first bytes are a SETTINGS frame of HTTP/2.")
}
