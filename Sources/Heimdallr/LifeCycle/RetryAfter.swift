internal import WireText

/// The Retry-After field, RFC 9110 section 10.2.3.
package enum RetryAfter {
    /// Seconds, or an HTTP date seen from the answer's own Date, else from our wall clock. Never negative.
    package static func duration(in response: HeimdallrHTTPResponse, wallClock: Int64) -> Duration? {
        guard let text = response.header("Retry-After") else { return nil }
        let bytes = [UInt8](copying: Array(text.utf8).span.trimmed)
        if !bytes.isEmpty, bytes.allSatisfy({ ASCII.isDigit($0) }) {
            return .seconds(Int64(String(decoding: bytes.prefix(10), as: UTF8.self)) ?? 0)
        }
        guard let date = HTTPDate.seconds(bytes) else { return nil }
        let now = response.header("Date").flatMap { HTTPDate.seconds(Array($0.utf8)) } ?? wallClock
        return .seconds(max(0, date - now))
    }
}
