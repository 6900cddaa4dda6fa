internal import WireText

/// Wait after consecutive failures: a random part of a ceiling that doubles with each failure, up to a cap.
struct Backoff: Sendable {
    let base: Duration
    let cap: Duration

    /// For faults that pass by themselves.
    static let transient = Backoff(base: .seconds(1), cap: .seconds(30))
    /// For faults that an operator has to repair. Frequent requests would only fill the server's log.
    static let permanent = Backoff(base: .seconds(10), cap: .seconds(300))
    /// For changed secrets that don't help.
    static let repair = Backoff(base: .seconds(1), cap: .seconds(300))
    /// For tokens that the resource refuses on their first use.
    static let rejection = Backoff(base: .seconds(4), cap: .seconds(300))

    /// - Parameter attempt: 1 for the first failure.
    func delay(attempt: Int, random: Double) -> Duration { ceiling(attempt: attempt) * random }

    func ceiling(attempt: Int) -> Duration { min(cap, base * (1 << min(max(attempt, 1) - 1, 24))) }
}

/// The Retry-After field, RFC 9110 section 10.2.3.
package enum RetryAfter {
    /// Returns the delay, never negative; `nil` if the field is missing or invalid. An HTTP date counts from the
    /// response's `Date`, or else from the wall clock.
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
