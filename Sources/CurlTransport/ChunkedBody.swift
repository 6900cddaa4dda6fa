import Reactor
import WireText

/// Decodes a whole chunked body (RFC 9112, section 7.1). libcurl has found its end already; extensions and trailers are
/// dropped.
enum ChunkedBody {
    /// - Returns: `nil` for an incomplete or malformed body.
    static func content(of bytes: Span<UInt8>) -> ByteBuffer? {
        var content = ByteBuffer(capacity: bytes.count, isSecret: true)
        var index = 0
        while true {
            var size = 0
            var digits = 0
            while index < bytes.count, let digit = ASCII.hexValue(bytes[index]) {
                // A larger size is impossible.
                guard size <= bytes.count else { return nil }
                size = size * 16 + Int(digit)
                digits += 1
                index += 1
            }
            index = bytes.position(of: UInt8(ascii: "\n"), from: index)
            guard digits > 0, index < bytes.count else { return nil }
            index += 1
            if size == 0 { return content }
            guard bytes.count - index >= size + 2 else { return nil }
            content.append(bytes.extracting(index..<(index + size)))
            index += size
            guard bytes[index] == UInt8(ascii: "\r"), bytes[index + 1] == UInt8(ascii: "\n") else { return nil }
            index += 2
        }
    }
}
