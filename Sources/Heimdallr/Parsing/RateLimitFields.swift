internal import WireText

/// Fields by which a server limits the rate of requests: `Retry-After` (RFC 9110 section 10.2.3), and the fields of
/// draft-ietf-httpapi-ratelimit-headers in its several spellings.
struct RateLimitFields {
    /// Whether a field says that no request is left, or demands a wait.
    var demandsWait: Bool
    /// Time to wait; `nil`: not stated.
    var wait: Duration?

    /// Spellings of the fields with the remaining requests and with the time of the next ones.
    private static let pairs = ["RateLimit", "X-RateLimit", "X-Rate-Limit"].map { ("\($0)-Remaining", "\($0)-Reset") }

    init(_ response: HeimdallrHTTPResponse, wallClock: Int64) {
        wait = RetryAfter.duration(in: response, wallClock: wallClock)
        demandsWait = response.header("Retry-After") != nil
        for (remaining, reset) in Self.pairs where wait == nil && Self.number(response.header(remaining)) == 0 {
            demandsWait = true
            wait = Self.number(response.header(reset)).map { Self.wait($0, wallClock) }
        }
        guard wait == nil, let field = response.header("RateLimit") else { return }
        // `limit=100, remaining=0, reset=50`, or `"name";r=0;t=50`.
        var values: [Substring: Int64] = [:]
        for part in field.split(whereSeparator: { ", ;".contains($0) }) {
            let halves = part.split(separator: "=", maxSplits: 1)
            if halves.count == 2, let value = Self.number(String(halves[1])) { values[halves[0]] = value }
        }
        guard values["remaining"] ?? values["r"] == 0 else { return }
        demandsWait = true
        wait = (values["reset"] ?? values["t"]).map { Self.wait($0, wallClock) }
    }

    /// A reset is a number of seconds, or at some servers a time since 1970.
    private static func wait(_ reset: Int64, _ wallClock: Int64) -> Duration {
        .seconds(max(0, reset > 1_000_000_000 ? reset - wallClock : reset))
    }

    private static func number(_ text: String?) -> Int64? {
        guard let text = text?.utf8.filter({ $0 != ASCII.space }), !text.isEmpty, text.count <= 12,
            text.allSatisfy({ ASCII.isDigit($0) })
        else { return nil }
        return Int64(String(decoding: text, as: UTF8.self))
    }
}
