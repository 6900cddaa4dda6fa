/// The Retry-After field, RFC 9110 section 10.2.3.
enum RetryAfter {
    /// Seconds, or an HTTP date seen from the answer's own Date, else from our wall clock. Never negative.
    static func duration(in response: HeimdallrHTTPResponse, wallClock: Int64) -> Duration? {
        guard let text = response.header("Retry-After") else { return nil }
        let value = text.utf8.drop { $0 == 0x20 || $0 == 0x09 }
        let trimmed = Substring(value).utf8.reversed().drop { $0 == 0x20 || $0 == 0x09 }.reversed()
        let bytes = Array(trimmed)
        if !bytes.isEmpty, bytes.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) {
            return .seconds(Int64(String(decoding: bytes.prefix(10), as: UTF8.self)) ?? 0)
        }
        guard let date = HTTPDate.seconds(bytes) else { return nil }
        let now = response.header("Date").flatMap { HTTPDate.seconds(Array($0.utf8)) } ?? wallClock
        return .seconds(max(0, date - now))
    }
}

/// RFC 9110 section 5.6.7: IMF-fixdate. The two obsolete forms are not read; who sends no usable date gets our backoff.
enum HTTPDate {
    /// Since 1970-01-01T00:00:00Z, of `Sun, 06 Nov 1994 08:49:37 GMT`.
    static func seconds(_ bytes: [UInt8]) -> Int64? {
        guard bytes.count == 29, String(decoding: bytes[25...], as: UTF8.self) == " GMT" else { return nil }
        func number(_ range: Range<Int>) -> Int? {
            var value = 0
            for byte in bytes[range] {
                guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
                value = value * 10 + Int(byte - UInt8(ascii: "0"))
            }
            return value
        }
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        guard let day = number(5..<7), let year = number(12..<16), let hour = number(17..<19),
            let minute = number(20..<22), let second = number(23..<25),
            let month = months.firstIndex(of: String(decoding: bytes[8..<11], as: UTF8.self)),
            (1...31).contains(day), year >= 1970, hour < 24, minute < 60, second <= 60
        else { return nil }
        return Int64(days(year: year, month: month + 1, day: day)) * 86400
            + Int64(hour * 3600 + minute * 60 + second)
    }

    /// Days since 1970-01-01 in the Gregorian calendar, counted in years that begin in March.
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let marchYear = month <= 2 ? year - 1 : year
        let marchMonth = (month + 9) % 12
        let dayOfYear = (153 * marchMonth + 2) / 5 + day - 1
        return marchYear * 365 + marchYear / 4 - marchYear / 100 + marchYear / 400 + dayOfYear - 719_468
    }
}
